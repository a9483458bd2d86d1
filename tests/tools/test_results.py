"""Pages of figures are what their result files say, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

import saved
from tools.results.__main__ import DOCS, pages, take
from tools.results.blocks import filled
from tools.results.commits import strangers
from tools.results.compared import take_comparison
from tools.results.files import ResultFileError, figure, read
from tools.results.prose import bare
from tools.results.reproduced import page, section
from tools.results.sections import results_page


def test_every_page_of_figures_is_current():
    for path, text in pages(DOCS).items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m tools.results"


def test_every_result_file_says_how_it_was_made():
    files = [p for p in (DOCS / "results").rglob("*.json") if p.name != "notes.json"]
    assert len(files) >= 8
    for path in files:
        read(path)
        assert not re.search(
            r"(?<![\w.])/(?:tmp|home|work|root|Users)/", path.read_text("utf-8")
        ), path


@pytest.fixture
def docs(tmp_path, monkeypatch):
    """A page with one section, and one file that a benchmark wrote."""
    folder = tmp_path / "docs"
    (folder / "results/sections").mkdir(parents=True)
    monkeypatch.setattr(
        "sys.argv", ["/x/benchmarks/harm.py", "/some/where/birds", "--save", "f", "--seeds=2"]
    )
    monkeypatch.setattr(saved, "code_commit", lambda: "abc1234")
    saved.save(
        folder / "results/measured/harm.json",
        seeds=[0, 1],
        selection="val_pseudo_groups",
        tables={"": saved.table(["set", "worst"], [["mark", "71.5 ± 0.4"], ["none", "70.0"]])},
        figures={"gain": "+1.6"},
    )
    text = "# Head\n\nIt gains {{ harm gain }} points over 300 steps.\n\n{{ whole: harm }}\n"
    (folder / "results/sections/10-harm.txt").write_text(text)
    return folder


def test_a_section_is_filled_from_its_file_with_how_it_was_made(docs):
    made = results_page(docs)
    assert "It gains +1.6 points over 300 steps." in made
    assert "```\npython benchmarks/harm.py BIRDS --seeds=2\n```" in made
    assert "| set | worst |\n|---|---:|\n| mark | 71.5 ± 0.4 |\n| none | 70.0 |" in made
    assert "seeds 0 to 1; picked by `val_pseudo_groups`;" in made and "commit abc1234" in made


@pytest.mark.parametrize(
    "slipped",
    [
        "It gains 1.6 points.",
        "It gains two points on 4 of 5 sets.",
        "It gains `71.5`.",
        "It gains +2 points.",
        "It is 95% right.",
        "It is .93 there.",
        "On 26 of 63 images it is.",
        "| set | worst |\n|---|---|\n| mark | much |",
        "{{ harm loss }}",
        "{{ other gain }}",
        "{{ table: other }}",
        "{{ table: harm nothing }}",
    ],
)
def test_a_figure_without_a_file_cannot_be_on_the_page(docs, slipped):
    section = docs / "results/sections/10-harm.txt"
    section.write_text(section.read_text() + "\n" + slipped + "\n")
    with pytest.raises(ResultFileError):
        results_page(docs)


def test_a_table_whose_file_is_gone_or_says_too_little_stops_the_page(docs):
    file = docs / "results/measured/harm.json"
    whole = json.loads(file.read_text())
    for missing in ("command", "commit", "machine", "seeds", "selection"):
        file.write_text(json.dumps({k: v for k, v in whole.items() if k != missing}))
        with pytest.raises(ResultFileError, match=missing):
            results_page(docs)
    file.unlink()
    with pytest.raises(ResultFileError, match="harm"):
        results_page(docs)


def test_a_note_without_a_file_stops_the_page_of_the_papers_tables(docs):
    (docs / "results/notes.json").write_text(json.dumps({"table2-cmnist": "Ours has 93.0."}))
    with pytest.raises(ResultFileError, match=r"93\.0"):
        page(docs)


def test_names_sizes_and_settings_are_no_figures():
    text = "D2CP on a ViT-S/14 at 112 px, seeds 0 to 4, Table 2, 4,166 bird photographs, `lr=0.01`,"
    assert bare(text + " [a link](page.md#at-3.5), stage 1, class 1, length 10, DINOv2.") == []
    assert bare("```\nx --set debias.lr=0.01\n```") == []


def test_a_typed_table_is_refused_where_all_are_files(docs):
    filed = "<!-- results/measured/harm.json -->\n<!-- end -->\n"
    (docs / "results/notes.json").write_text("{}")
    page, other = docs / "performance.md", docs / "other.md"
    page.write_text("# Speed\n\n```\n| a | b |\n```\n\n" + filed)
    other.write_text("| typed | 3 |\n|---|---|\n| x | 4 |\n\n" + filed)
    made = pages(docs)
    assert "| mark | 71.5 ± 0.4 |" in made[page] and "| typed | 3 |" in made[other]
    page.write_text(made[page] + "\n| typed | 3 |\n|---|---|\n| x | 4 |\n")
    with pytest.raises(ResultFileError, match=r"performance.md: .* table '\| typed \| 3 \|'"):
        pages(docs)


def test_a_block_is_its_file_and_a_block_without_a_file_fails(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/x.csv").write_text("method,worst\nERM,45.0 ± 8.7\n")
    written = (
        "before\n<!-- results/x.csv -->\n| method | worst |\n| ERM | 99 |\n<!-- end -->\nafter\n"
    )
    made = filled(written, tmp_path)
    assert made == (
        "before\n<!-- results/x.csv -->\n| method | worst |\n|---|---:|\n"
        "| ERM | 45.0 ± 8.7 |\n<!-- end -->\nafter\n"
    )
    assert filled(made, tmp_path) == made
    with pytest.raises(FileNotFoundError):
        filled(written.replace("x.csv", "y.csv"), tmp_path)


def compared() -> dict:
    def line(method: str, worst: float, mined: bool) -> dict:
        shares = {"worst_group": worst, "mean": 0.75, "train_weighted_mean": 0.8}
        spreads = {f"{key}_std": 0.01 for key in shares}
        costs = {"trainable": 50370.0, "passes": 43968.0, "seconds": 9.0}
        labels = {"method": method, "group_labels": [], "mined_groups": mined}
        return {**labels, **shares, **spreads, **costs}

    return {
        "data": "birds",
        "command": "d2cp compare /some/where/birds --out /some/where/out --budget 44000",
        "commit": "abc1234",
        "machine": "two cores",
        "tier": "features",
        "budget": 44000,
        "backbone": "/some/where/vit",
        "selection": "val_pseudo_groups",
        "results": [
            {"split": "test", "method": "erm", "seed": 0, "worst_group": 0.38},
            {"split": "test", "method": "d2cp", "seed": 0, "worst_group": 0.734},
        ],
        "summary": {"test": [line("erm", 0.38, False), line("d2cp", 0.734, True)]},
        "paired": {"test": {"erm": {"worst_group": 0.354, "interval": [0.333, 0.368]}}},
    }


def test_a_comparison_is_taken_without_paths_and_its_block_is_its_file(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/compare.json").write_text(json.dumps(compared()))
    made = take_comparison(tmp_path / "out", tmp_path, "birds", {"commit": "other"})
    assert made == tmp_path / "results/compare/birds.json" and "/some/where" not in made.read_text()
    page = "<!-- results/compare/birds.json test -->\nold 99.9\n<!-- end -->\n"
    text = filled(page, tmp_path)
    assert "| ERM | none | 38.0 ± 1.0 | 75.0 ± 1.0 | 80.0 ± 1.0 | +35.4 [+33.3, +36.8] |" in text
    assert "| D2CP | mined | 73.4 ± 1.0 |" in text and "99.9" not in text
    assert filled(text, tmp_path) == text
    assert read(made)["command"] == "d2cp compare BIRDS --out OUT --budget 44000"
    assert read(made)["commit"] == "abc1234"
    assert figure(tmp_path, ["birds", "test", "d2cp", "worst_group"]) == "73.4 ± 1.0"
    assert figure(tmp_path, ["birds", "test", "erm", "paired"]) == "+35.4 [+33.3, +36.8]"
    (tmp_path / "results/sections").mkdir()
    (tmp_path / "results/sections/1.txt").write_text("{{ whole: birds }}\n")
    page = results_page(tmp_path)
    assert "vit, features, 44000 passes a method; seed 0; picked by `val_pseudo_groups`" in page


def test_a_comparison_of_older_code_is_taken_with_what_it_does_not_say(tmp_path):
    (tmp_path / "out").mkdir()
    old = {k: v for k, v in compared().items() if k not in ("command", "commit")}
    (tmp_path / "out/compare.json").write_text(json.dumps(old))
    with pytest.raises(ResultFileError, match="command"):
        take_comparison(tmp_path / "out", tmp_path, "birds", {"commit": "abc1234"})
    said = {"commit": "abc1234", "command": "d2cp compare BIRDS --out OUT"}
    assert read(take_comparison(tmp_path / "out", tmp_path, "birds", said))["commit"] == "abc1234"


def whole() -> dict:
    figure = {"data": "cmnist", "split": "test", "metric": "worst_group", "std": None}
    return {
        "table": "table2",
        "title": "Table 2",
        "scale": "here",
        "seeds": 1,
        "machine": "two cores",
        "commit": "abc1234",
        "seconds": 3.0,
        "backbone": "/some/where/vit",
        "set": ["debias.image_size=98"],
        "selection": ["val_worst_class"],
        "metrics": [{"key": "worst_group", "heading": "worst group"}],
        "rank_correlation": [],
        "paper": {"source": "them", "where": "Table 2"},
        "cells": {"cmnist/a/0": "x"},
        "version": "0",
        "figures": [
            {
                **figure,
                "row": "a",
                "name": "(a)",
                "mean": 0.1234,
                "by_seed": {"0": 0.1234},
                "paper": 0.0942,
                "paper_std": 0.1448,
            },
        ],
    }


def test_a_section_has_the_figures_of_its_file_and_the_command():
    more = {"column": ["a=cue"], "masks": "masks"}
    text = section({**whole(), **more}, {"table2-cmnist": "A note."})
    assert "| (a) | 12.3 | 9.4 ± 14.5 | 12.3 |" in text
    assert (
        "--rows a --backbone FOLDER --column a=cue --masks MASKS --set debias.image_size=98" in text
        and text.endswith("\nA note.\n")
    )
    assert set(re.findall(r"\d+\.\d", text)) == {"12.3", "9.4", "14.5"}


def test_tables_are_taken_without_the_machines_paths(tmp_path):
    (tmp_path / "out/here/table2").mkdir(parents=True)
    (tmp_path / "out/here/table2/table.json").write_text(json.dumps(whole()))
    (tmp_path / "docs/results").mkdir(parents=True)
    (made,) = take(tmp_path / "out", tmp_path / "docs", {"commit": "other"})
    assert made.name == "table2-cmnist.json"
    text = made.read_text()
    assert json.loads(text)["backbone"] == "vit" and "/some/where" not in text
    assert read(made)["commit"] == "abc1234"
    assert figure(tmp_path / "docs", ["table2-cmnist", "test", "a", "worst_group"]) == "12.3"
    assert (
        figure(tmp_path / "docs", ["table2-cmnist", "test", "a", "paper-worst_group"])
        == "9.4 ± 14.5"
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_a_commit_that_history_does_not_have_is_told(docs):
    def git(*words: str) -> str:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        done = subprocess.run(
            ["git", *who, *words], cwd=docs, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    file = docs / "results/measured/harm.json"
    whole = json.loads(file.read_text())
    for commit, known in ((git("rev-parse", "--short", "HEAD"), True), ("abc1234", False)):
        file.write_text(json.dumps({**whole, "commit": commit}))
        assert bool(strangers(docs)) != known
    file.write_text(json.dumps({**whole, "commit": git("rev-parse", "HEAD") + "-dirty"}))
    assert strangers(docs)
