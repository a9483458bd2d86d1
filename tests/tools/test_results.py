"""Pages of figures are what their result files say, and nothing else."""

from __future__ import annotations

import json
import re

import pytest

from tools.results.__main__ import DOCS, pages, take
from tools.results.blocks import filled
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
    text = section(whole(), {"table2-cmnist": "A note."})
    assert "| (a) | 12.3 | 9.4 ± 14.5 | 12.3 |" in text
    assert "--rows a --backbone FOLDER --set debias.image_size=98" in text and text.endswith(
        "\nA note.\n"
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
