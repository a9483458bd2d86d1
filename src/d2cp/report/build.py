"""From a run directory to its HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from d2cp.core.files import write_text
from d2cp.core.run_directory import RunDirectory
from d2cp.data.place import Place
from d2cp.data.table import Table
from d2cp.errors import D2CPError
from d2cp.report.comparison_page import compare_page
from d2cp.report.finding_parts import findings_shown
from d2cp.report.html import render
from d2cp.report.page import load_pictures, run_page
from d2cp.report.payload import IMAGE_LIMIT, ReportData, gather
from d2cp.report.scan_page import scan_page
from d2cp.report.steps import commands
from d2cp.report.summary import read_comparison, summarise
from d2cp.report.thumbs import load_thumbnails

TOTAL_BYTES = 3_300_000  # of all pictures; a third more as base64: under 5 MB with the text
LEAST_BYTES = 500_000


def write_report(
    run: RunDirectory,
    out: Path | None = None,
    *,
    table: Table | None = None,
    images: int = IMAGE_LIMIT,
) -> Path:
    """Write one self-contained file, RUN/report.html unless `out` says otherwise.

    `table` is the run's data set where the caller has it in hand; else it is found again. A
    directory of `d2cp compare` gets the comparison report, one of `d2cp scan` the scan's page."""
    target = out or run.path / "report.html"
    if (run.path / "compare.json").is_file():
        write_text(target, render("compare.html.jinja", compare_page(read_comparison(run))))
        return target
    if run.has("scan") and not run.has("mine"):
        write_text(target, render("scan.html.jinja", scan_page(run, table)))
        return target
    data = gather(run, images)
    exchanged = run.path / "transplants" / "exchanged.png" if run.has("transplants") else None
    pictures, findings = load_pictures(data), _findings(data, exchanged)
    shown = [*pictures.values(), *(p["file"] for f in findings for p in f["pictures"])]
    budget = max(LEAST_BYTES, TOTAL_BYTES - sum(len(p.data) for p in shown))
    thumbs, note = _thumbnails(data, table, budget)
    steps = commands(run.path, data.description, summarise(run))
    page = run_page(data, pictures, thumbs, note, steps, findings)
    write_text(target, render("run.html.jinja", page))
    return target


def _findings(data: ReportData, exchanged: Path | None) -> list[dict[str, Any]]:
    """Those of the run's scan, where it has one."""
    if not data.scan:
        return []
    used = data.finding.ranks if data.finding else ()
    return findings_shown(data.scan, data.run / "scan", used, data.reliance, exchanged)


def _thumbnails(data: ReportData, table: Table | None, budget: int) -> tuple[dict[int, bytes], str]:
    """The images, or a note that says why there are none: a run outlives its data."""
    try:
        if table is None:
            place = Place.from_record(data.description.get("data", {}))
            table = place.table(int(data.config.get("seed", 0)))
        return load_thumbnails(table, data.rows.ids, data.sample.rows, budget), ""
    except (D2CPError, OSError) as error:
        reason = str(error).splitlines()[0]
        return {}, f"The images could not be read again, so none is shown here: {reason}"
