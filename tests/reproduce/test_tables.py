"""The rows are what the paper says they are, and the shipped figures are the paper's."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from d2cp.compare.paper_figures import TABLE_1, paper, published
from d2cp.config import load_config
from d2cp.config.strict import changed
from d2cp.debias.labels import selection_used
from d2cp.errors import ConfigError
from d2cp.reproduce.tables import ALPHAS, LENGTHS, REPRODUCTIONS, chosen

PAPER = load_config("paper-cmnist").debias


def settings(table: str) -> dict[str, dict[str, object]]:
    rows = chosen(table).rows
    return {row.key: asdict(changed(PAPER, row.changes)) for row in rows}


def test_rows_of_the_components():
    marks = {  # CBCM, DCD, XRM: the ticks of the paper's table
        "a": (False, False, False),
        "b": (True, False, False),
        "c": (False, False, True),
        "d": (True, False, True),
        "e": (True, True, False),
        "f": (True, True, True),
    }
    found = settings("table2")
    assert {
        key: (s["use_pseudo"], s["dual_branch"], s["use_xrm"]) for key, s in found.items()
    } == marks


def test_labels_are_compared_without_xrm_and_the_mined_column_is_row_e():
    found = settings("table3")
    assert [s["use_xrm"] for s in found.values()] == [False] * 3
    assert [s["pseudo_source"] for s in found.values()] == ["random", "cbcm", "true"]
    assert found["e"] == settings("table2")["e"]


def test_sweeps_change_one_setting_and_pass_through_the_whole_method():
    whole = asdict(PAPER)
    for table, name, values in (
        ("prompt-length", "prompt_length", LENGTHS),
        ("alpha", "alpha", ALPHAS),
    ):
        found = settings(table)
        assert [s[name] for s in found.values()] == list(values)
        assert all({**s, name: whole[name]} == whole for s in found.values())
        assert whole in found.values()


def test_group_dro_of_the_saliency_figure_sees_true_groups_on_one_branch():
    found = settings("gradcam")["group_dro"]
    assert (found["pseudo_source"], found["dual_branch"], found["use_xrm"]) == (
        "true",
        False,
        False,
    )


def test_no_row_with_other_labels_reads_bits_that_were_made_from_mined_ones():
    for name in REPRODUCTIONS:
        for one in settings(name).values():
            assert one["pseudo_source"] == "cbcm" or not one["use_xrm"]


def test_rows_without_mined_groups_are_not_selected_by_them():
    base = load_config("here-digits").debias
    used = {row.key: selection_used(changed(base, row.changes)) for row in chosen("table2").rows}
    assert used["a"] == "val_worst_class" and used["c"] == "val_xrm_groups"
    assert {used[k] for k in "bdef"} == {"val_pseudo_groups"}


# The paper's Table 2, written out: worst-group accuracy and its deviation.
TABLE_2 = {
    "waterbirds": [
        (74.97, 2.78),
        (85.57, 2.53),
        (86.29, 1.11),
        (86.88, 0.97),
        (83.28, 1.71),
        (90.81, 0.31),
    ],
    "celeba": [
        (67.41, 4.49),
        (84.44, 3.38),
        (84.63, 1.61),
        (88.86, 1.95),
        (88.71, 2.74),
        (91.80, 0.27),
    ],
    "metashift": [
        (71.65, 10.43),
        (75.86, 5.18),
        (74.85, 5.73),
        (81.63, 0.07),
        (71.80, 5.36),
        (82.20, 1.13),
    ],
    "cmnist": [
        (9.42, 14.48),
        (87.20, 3.35),
        (90.95, 3.82),
        (91.30, 2.18),
        (88.41, 1.25),
        (91.99, 1.20),
    ],
}


@pytest.mark.parametrize("data", TABLE_2)
def test_the_shipped_component_table_is_the_papers(data):
    found = published("table2", data, "test")
    assert [(f["worst_group"], f["worst_group_std"]) for f in found.values()] == TABLE_2[data]
    assert list(found) == [row.key for row in chosen("table2").rows]


def test_the_shipped_figures_of_digits_are_the_papers():
    labels = published("table3", "cmnist", "test")
    assert {k: (f["worst_group"], f["mean"]) for k, f in labels.items()} == {
        "random": (0.0, 99.06),
        "e": (88.41, 95.87),
        "true": (92.75, 95.75),
    }
    lengths = published("prompt-length", "cmnist", "test")
    assert {k: (f["worst_group"], f["mean"]) for k, f in lengths.items()} == {
        "1": (82.75, 88.95),
        "5": (88.74, 95.25),
        "10": (91.99, 96.39),
        "15": (92.75, 95.72),
        "20": (92.75, 95.94),
    }
    assert TABLE_1["cmnist"]["d2cp"] == (91.99, 1.20, 96.39, 1.19)


def test_every_row_of_the_papers_is_a_row_here():
    for name, wanted in REPRODUCTIONS.items():
        assert paper()["tables"][name]["source"]
        if name in ("recall", "concepts"):
            continue
        keys = {row.key for row in wanted.rows}
        for splits in paper()["tables"][name]["figures"].values():
            assert set(splits["test"]) <= keys, name


def test_rows_are_chosen_in_the_tables_order():
    assert [row.key for row in chosen("table2", "f, a").rows] == ["a", "f"]
    with pytest.raises(ConfigError, match="table2 has no row 'z'"):
        chosen("table2", "z")
    with pytest.raises(ConfigError, match="no table or figure 'tabel2'") as caught:
        chosen("tabel2")
    assert caught.value.remedy == "did you mean 'table2'?"
    with pytest.raises(ConfigError, match="some of a, b"):
        chosen("table2", " ,")


def test_rows_of_our_own_stand_beside_the_papers_only_where_they_are_named():
    ours = [row for row in REPRODUCTIONS["table2"].rows if row.ours]
    assert [row.key for row in ours] == ["e-solved", "f-solved"]
    assert not any(row.ours for name in REPRODUCTIONS for row in chosen(name).rows)
    base = load_config("here-photos").debias
    for row in ours:
        plain = next(r for r in chosen("table2").rows if r.key == row.key[0])
        solved, joint = (asdict(changed(base, r.changes)) for r in (row, plain))
        assert {k for k in joint if joint[k] != solved[k]} == {"spurious_fit", "spurious_heads"}
        assert (joint["spurious_fit"], joint["spurious_heads"]) == ("joint", 1)


def test_on_photographs_the_mined_attribute_is_cbcms_as_the_rows_say():
    assert not load_config("here-photos").scan.use and not load_config("here-digits").scan.use
