"""Cells to figures: means, deviations, the paper's column, the order of rows, the chart."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from scipy.stats import spearmanr

from d2cp.reproduce.charts import chart, round_ticks
from d2cp.reproduce.outcome import HEADER, csv_rows, outcome, rank_correlation
from d2cp.reproduce.page import correlation, page
from d2cp.reproduce.tables import REPRODUCTIONS, chosen

WORST = {"a": [0.1, 0.3], "b": [0.8, 0.9], "c": [0.9, 0.92], "f": [0.93, 0.95]}


def made(table: str = "table2", benchmark: str = "cmnist", worst=None) -> dict:
    wanted = chosen(table)
    found = []
    for row in wanted.rows:
        for seed, value in enumerate((worst or WORST).get(row.key, [])):
            cell = SimpleNamespace(
                row=row,
                seed=seed,
                name=f"x/{row.key}/{seed}",
                identity=f"{row.key}{seed}",
                data=SimpleNamespace(name="x", benchmark=benchmark),
            )
            lines = [
                {"split": split, "figures": {"worst_group": value, "mean": 0.9}}
                for split in ("test", "test_balanced")
            ]
            found.append((cell, {"lines": lines, "seconds": 1.0}))
    return outcome(wanted, found, {"scale": "here"})


def test_means_deviations_and_the_papers_column():
    whole = made()
    first = whole["figures"][0]
    assert (first["row"], first["split"], first["metric"]) == ("a", "test", "worst_group")
    assert first["mean"] == pytest.approx(0.2) and first["std"] == pytest.approx(0.2 / 2**0.5)
    assert first["paper"] == pytest.approx(0.0942)
    assert first["paper_std"] == pytest.approx(0.1448)
    balanced = [f for f in whole["figures"] if f["split"] == "test_balanced"]
    assert balanced and all(f["paper"] is None for f in balanced)
    assert all(f["paper"] is None for f in made(benchmark="")["figures"])


@pytest.mark.parametrize("values", [[0.2, 0.96, 0.91, 0.94], [0.9, 0.3, 0.9, 0.9]])
def test_the_rank_correlation_is_scipys(values):
    theirs = [9.42, 87.20, 87.20, 91.99]
    found = rank_correlation(np.array(values), np.array(theirs))
    assert found == pytest.approx(float(spearmanr(values, theirs)[0]))


def test_the_order_of_rows_is_compared_with_the_papers():
    swapped = {**WORST, "b": [0.95, 0.97]}  # b is first here and third there
    found = {o["split"]: o for o in made(worst=swapped)["rank_correlation"]}
    theirs = [9.42, 87.20, 90.95, 91.99]
    expected = float(spearmanr([0.2, 0.96, 0.91, 0.94], theirs)[0])
    for split in ("test", "test_balanced"):
        assert found[split]["rows"] == 4
        assert found[split]["correlation"] == pytest.approx(expected)
    assert made()["rank_correlation"][0]["correlation"] == pytest.approx(1)
    turned = {
        **WORST,
        "b": [0.8, 0.1],
        "a": [0.1, 0.8],
    }  # seed 1 has (a) and (b) the other way round
    by_seed = made(worst=turned)["rank_correlation"][0]["by_seed"]
    assert by_seed == {0: pytest.approx(1.0), 1: pytest.approx(0.8)}
    assert "(seed by seed +1.00, +0.80)" in correlation(made(worst=turned)["rank_correlation"][0])
    assert made(benchmark="")["rank_correlation"] == []
    assert made(worst={"a": [0.1], "f": [0.9]})["rank_correlation"] == []


def test_the_csv_has_every_figure_and_every_seed():
    rows = [dict(zip(HEADER, row, strict=True)) for row in csv_rows(made())]
    first = rows[0]
    assert first["by_seed"] == "0.1000 0.3000" and first["seeds"] == 2
    assert first["mean"] == "0.2000" and first["paper"] == "0.0942"
    assert len(rows) == 4 * 2 * 2


@pytest.mark.parametrize("table", ["table2", "prompt-length"])
def test_a_chart_is_written_twice_from_the_same_shapes(table):
    wanted = REPRODUCTIONS[table]
    worst = {row.key: [0.5, 0.7] for row in wanted.rows}
    figures = [
        f
        for f in made(table, worst=worst)["figures"]
        if (f["split"], f["metric"]) == ("test", "worst_group")
    ]
    drawn = chart("a < b & c", figures, "worst group", wanted.sweep)
    root = ElementTree.fromstring(drawn.svg())
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "a < b & c" in texts
    image = Image.open(io.BytesIO(drawn.png()))
    assert image.size == (2 * drawn.width, 2 * drawn.height)
    assert len(image.getcolors(1 << 24)) > 3


def test_the_page_has_the_papers_column_only_where_the_paper_has_a_figure():
    whole = made()
    drawn = {
        ("x", split): chart(split, [f for f in whole["figures"] if f["split"] == split], "worst")
        for split in ("test", "test_balanced")
    }
    headings = [
        re.findall(r'<th scope="col"[^>]*>([^<]*)</th>', part)
        for part in page({**whole, "cells": {}}, drawn).split("<section")[1:3]
    ]
    assert headings == [
        ["Row", "Worst group", "Paper", "Mean", "Worst group, by seed"],
        ["Row", "Worst group", "Mean", "Worst group, by seed"],
    ]


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.302, 0.953, [20, 40, 60, 80, 100]),
        (0.765, 0.953, [75, 80, 85, 90, 95, 100]),
        (0.91, 0.93, [91, 92, 93]),
        (0.5, 0.5, [50, 51]),
        (0.0, 1.0, [0, 20, 40, 60, 80, 100]),
    ],
)
def test_a_curve_has_round_ticks_around_its_figures(low, high, ticks):
    assert round_ticks(low, high) == ticks
