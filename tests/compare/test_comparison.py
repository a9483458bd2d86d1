"""Figures over seeds, paired differences, and the tidy table."""

from __future__ import annotations

import math

import numpy as np
import pytest

from d2cp.compare.comparison import (
    HEADER,
    by_method,
    comparison,
    image_interval,
    paired_differences,
    tidy_rows,
)
from d2cp.compare.paper_figures import TABLE_1
from d2cp.compare.registry import BUILT_IN


def cell(method: str, seed: int, worst: float, labels: tuple[str, ...] = ()) -> dict:
    groups = {"0,0": {"n": 50, "accuracy": worst}, "0,1": {"n": 5000, "accuracy": 0.99}}
    result = {
        "method": method,
        "seed": seed,
        "split": "test",
        "selection": "val_worst_class",
        "grouping": "true",
        "worst_group": worst,
        "mean": 0.98,
        "train_weighted_mean": 0.97,
        "groups": groups,
        "intervals": {
            "worst_group": [worst - 0.1, worst + 0.1],
            "mean": [0.9, 1.0],
            "train_weighted_mean": [0.9, 1.0],
        },
    }
    facts = {"tier": "prompts", "trainable": 10, "passes": 100, "seconds": 1.5, "params": {}}
    return {
        "results": [result],
        "group_labels": list(labels),
        "mined_groups": method == "d2cp",
        "notes": [],
        **facts,
    }


CELLS = [
    *(cell("erm", s, w) for s, w in enumerate((0.10, 0.20, 0.30))),
    *(cell("group_dro", s, w, ("train",)) for s, w in enumerate((0.85, 0.80, 0.90))),
    *(cell("d2cp", s, w) for s, w in enumerate((0.90, 0.86, 0.91))),
]


def test_paired_differences_are_seed_by_seed_with_a_t_interval():
    whole = comparison(CELLS, data="cmnist", about={"budget": 100})
    pair = whole["paired"]["test"]["group_dro"]
    differences = np.array([0.05, 0.06, 0.01])
    half = 4.302653 * differences.std(ddof=1) / math.sqrt(3)  # t of two degrees of freedom
    assert pair["worst_group"] == pytest.approx(0.04)
    assert pair["interval"] == pytest.approx([0.04 - half, 0.04 + half], abs=1e-6)
    assert "d2cp" not in whole["paired"]["test"]
    assert whole["schema"] == 1 and whole["paper"]["d2cp"]["worst_group"] == 91.99


def test_pairs_use_only_seeds_that_both_have_and_one_seed_has_no_interval():
    results = [r for c in (CELLS[0], CELLS[6], CELLS[7]) for r in c["results"]]
    pair = paired_differences(results, "test")["erm"]
    assert pair == {"worst_group": pytest.approx(0.8), "interval": None, "seeds": [0]}


def test_one_line_a_method_with_mean_and_deviation():
    lines = by_method([r | {k: c[k] for k in c} for c in CELLS for r in c["results"]], "test")
    assert [line["method"] for line in lines] == ["erm", "group_dro", "d2cp"]
    assert lines[0]["worst_group"] == pytest.approx(0.2)
    assert lines[0]["worst_group_std"] == pytest.approx(0.1)
    assert lines[1]["group_labels"] == ["train"]


def test_interval_over_images_is_as_wide_as_one_seed_s():
    """Seeds share their test images: more seeds tell no more about them."""
    results = [r for c in CELLS[6:] for r in c["results"]]
    low, high = image_interval(results, "worst_group")
    assert (low, high) == pytest.approx((0.79, 0.99)) and low < np.mean([0.90, 0.86, 0.91]) < high


def test_tidy_rows_have_a_cell_a_column():
    whole = comparison(CELLS, data="other", about={})
    rows = tidy_rows(whole["results"])
    assert len(rows) == 9 and all(len(row) == len(HEADER) for row in rows)
    assert rows[3][HEADER.index("group_labels")] == "train"
    assert rows[0][HEADER.index("group_labels")] == "none"
    assert rows[6][HEADER.index("group_labels")] == "mined"
    assert whole["paper"] is None


def test_the_paper_s_figures_belong_to_methods_there_are():
    for column in TABLE_1.values():
        assert set(column) <= set(BUILT_IN)
        assert max(f.worst_group for f in column.values()) <= 100
