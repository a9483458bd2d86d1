"""Pages of figures are what their result files say, and nothing else."""

from __future__ import annotations

import json
import re

import pytest

from tools.results.__main__ import DOCS, pages, take
from tools.results.blocks import bare, filled
from tools.results.compared import take_comparison
from tools.results.reproduced import section


def test_every_page_of_figures_is_current():
    for path, text in pages(DOCS).items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m tools.results"


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
    made = take_comparison(tmp_path / "out", tmp_path, "birds")
    assert made == tmp_path / "results/compare/birds.json" and "/some/where" not in made.read_text()
    page = "<!-- results/compare/birds.json test -->\nold 99.9\n<!-- end -->\n"
    text = filled(page, tmp_path)
    assert "| ERM | none | 38.0 ± 1.0 | 75.0 ± 1.0 | 80.0 ± 1.0 | +35.4 [+33.3, +36.8] |" in text
    assert "| D2CP | mined | 73.4 ± 1.0 |" in text and "99.9" not in text
    assert filled(text, tmp_path) == text and bare(text) == []


def test_tables_that_no_file_is_named_for_are_listed_by_their_heading():
    table = "| row | worst |\n|---|---:|\n| a | 12.3 |\n"
    words = "| setting | meaning |\n|---|---|\n| a | much |\n"
    block = f"<!-- results/x.csv -->\n{table}<!-- end -->\n"
    text = f"# One\n\n{words}\n## Two\n\n{table}\n{block}\n## Three\n\n{table}"
    assert bare(text) == ["Two", "Three"]


def whole() -> dict:
    figure = {"data": "cmnist", "split": "test", "metric": "worst_group", "std": None}
    return {
        "table": "table2",
        "title": "Table 2",
        "scale": "here",
        "seeds": 1,
        "machine": "two cores",
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
    (made,) = take(tmp_path / "out", tmp_path / "docs")
    assert made.name == "table2-cmnist.json"
    text = made.read_text()
    assert json.loads(text)["backbone"] == "vit" and "/some/where" not in text
