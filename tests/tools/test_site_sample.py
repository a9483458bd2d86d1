"""The site's sample: a report, a summary and a page from any finished run."""

from __future__ import annotations

import json

from d2cp.config import load_config
from d2cp.data import load_table
from report_artifacts import write_run
from tools.site.sample import QUICK, finished, made_by, quick_command, write_sample


def test_a_finished_run_becomes_a_page_a_report_and_a_summary(tmp_path):
    table = load_table("cmnist").subsample({"train": 40, "val": 20, "test": 40})
    write_run(tmp_path / "run", table)
    assert finished(tmp_path / "run") and not finished(tmp_path / "nothing")
    write_sample(tmp_path / "run", tmp_path / "sample")
    page = (tmp_path / "sample" / "index.md").read_text(encoding="utf-8")
    summary = json.loads((tmp_path / "sample" / "summary.json").read_text(encoding="utf-8"))
    assert summary["discover"]["verdict"] in page
    assert page.count("| d2cp |") == len({r["split"] for r in summary["results"]})
    assert (tmp_path / "sample" / "report.html").stat().st_size > 10_000


def test_the_quick_run_has_settings_that_exist_and_is_named_on_its_page():
    words = quick_command()
    load_config("demo", assignments=[words[i + 1] for i, w in enumerate(words) if w == "--set"])
    assert made_by(QUICK).startswith("d2cp run cmnist --preset demo")
