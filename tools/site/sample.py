"""`python -m tools.site.sample [--run RUN]`: a report and a run's summary for the site.

A finished RUN (`make demo` makes demo-run) is taken as it is; without one the digits are run with
fewer images and steps, in minutes."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from d2cp.cli import main as d2cp
from d2cp.core.files import write_json, write_text
from d2cp.core.run_directory import RunDirectory
from d2cp.report.build import write_report
from d2cp.report.summary import summarise

BUILD = Path("build")
QUICK = BUILD / "sample-run"
PAGES = BUILD / "sample"
SETTINGS = {
    "train_limit": 12000,
    "val_limit": 1500,
    "test_limit": 2000,
    "disentangle.steps": 300,
    "environments.steps": 500,
}


def finished(path: Path) -> bool:
    return RunDirectory(path).has("evaluate")


def quick_command() -> list[str]:
    """What makes the sample where there is no demo; also printed on its page."""
    words = ["run", "cmnist", "--preset", "demo", "--out", str(QUICK)]
    for name, value in SETTINGS.items():
        words += ["--set", f"{name}={value}"]
    return words


def made_by(path: Path) -> str:
    return "make demo" if path != QUICK else "d2cp " + shlex.join(quick_command())


def write_sample(path: Path, folder: Path) -> None:
    """The page, its report and the summary that `d2cp show --json` prints."""
    run = RunDirectory.open(path)
    folder.mkdir(parents=True, exist_ok=True)
    write_report(run, folder / "report.html")
    whole = summarise(run)
    write_json(folder / "summary.json", whole)
    write_text(folder / "index.md", page(whole, made_by(path)))


def page(whole: dict, command: str) -> str:  # type: ignore[type-arg]
    rows = [
        f"| {r['method']} | {r['split']} | {100 * r['worst_group']:.1f} | {100 * r['mean']:.1f} |"
        for r in whole["results"]
    ]
    seconds = sum(whole["seconds"].values())
    return "\n".join(
        [
            "# A sample report",
            "",
            "[Open the report](report.html) (one file, as `d2cp report` writes it) or "
            "[the run's summary](summary.json), as `d2cp show --json` prints it. "
            "[How to read it](../report.md).",
            "",
            f"The run behind it was made, together with this site, by `{command}`; its stages "
            f"took {seconds:.0f} seconds. Verdict: **{whole['discover']['verdict']}**. "
            f"{whole['discover']['sentence']}",
            "",
            "| method | split | worst group, % | mean, % |",
            "|---|---|---:|---:|",
            *rows,
            "",
            "Figures that can be cited are in [results](../results.md): this run is there to be "
            "looked at.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.site.sample", description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("demo-run"), help="a finished run, if any")
    path = parser.parse_args().run
    if not finished(path):
        path = QUICK
        if not finished(path):
            d2cp_or_stop(quick_command())
    write_sample(path, PAGES)


def d2cp_or_stop(words: list[str]) -> None:
    """The command line leaves by SystemExit; only its faults end the build."""
    try:
        d2cp(words)
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    main()
