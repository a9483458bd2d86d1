"""Reliance before and after: the change of the gap, and what is said of it."""

from types import SimpleNamespace

import numpy as np
import pytest

from d2cp.core.arrays import UNKNOWN
from d2cp.data.table import SPLIT_NAMES
from d2cp.evaluate.reliance import change_of_gap, reliance, scored_rows
from d2cp.evaluate.result import group_name
from d2cp.scan.scanned_rows import ScannedRows

N = 400


@pytest.fixture
def table():
    split = np.array([SPLIT_NAMES.index(s) for s in ("train", "val", "test", "test")] * (N // 4))
    y = np.arange(N) // 8 % 2
    return ScannedRows([str(i) for i in range(N)], y, split.astype(np.int8), ("ant", "bee"))


def finding(table, rank, seed):
    draw = np.random.default_rng(seed)
    value = np.where(draw.random(N) < 0.7, table.y, 1 - table.y)
    scores = (value - 0.5)[:, None].astype(np.float32)
    return SimpleNamespace(rank=rank, name=f"cue {rank}", value=value, scores=scores, threshold=0.0)


def test_the_change_is_the_difference_of_the_two_gaps(table):
    draw = np.random.default_rng(1)
    y, against = table.y, finding(table, 1, 3).value != table.y
    before, after = (draw.random(N) < share for share in (0.4, 0.3))
    found, interval = change_of_gap(after.astype(float) - before, against, y)

    def gap(wrong):
        each = [
            wrong[(y == c) & against].mean() - wrong[(y == c) & ~against].mean() for c in (0, 1)
        ]
        return np.mean(each)

    assert found == pytest.approx(gap(after) - gap(before))
    assert interval[0] < found < interval[1]


def test_answers_that_stay_the_same_change_nothing_for_sure(table):
    against = finding(table, 1, 3).value != table.y
    assert change_of_gap(np.zeros(N), against, table.y) == (0.0, [0.0, 0.0])
    assert change_of_gap(np.zeros(N), np.zeros(N, dtype=bool), table.y) == (None, None)


def test_a_model_that_moves_from_one_cue_to_the_other_is_caught(table):
    first, second = finding(table, 1, 3), finding(table, 2, 4)
    made = reliance({"erm": first.value, "d2cp": second.value}, table, [first, second], used=(1,))
    one, two = made["findings"]
    assert made["splits"] == ["test"] and made["images"] == N // 2
    assert one["used"] and not two["used"]
    assert one["erm"]["gap"] == 1 and not one["rise"] and "fell" in one["sentence"]
    assert two["d2cp"]["gap"] == 1 and two["rise"] and two["change_interval"][0] > 0
    assert "ROSE from" in two["sentence"] and two["beyond_chance"]
    same = reliance({"erm": first.value, "d2cp": first.value}, table, [first])["findings"][0]
    assert not same["rise"] and not same["beyond_chance"] and "stays" in same["sentence"]


def test_without_a_control_there_is_no_change(table):
    cue = finding(table, 1, 3)
    (only,) = reliance({"d2cp": cue.value}, table, [cue])["findings"]
    assert only["d2cp"]["gap"] == 1 and "change" not in only and "rise" not in only


def test_validation_counts_only_where_there_is_no_test(table):
    answers = np.where(table.split == SPLIT_NAMES.index("test"), UNKNOWN, table.y)
    rows = scored_rows(answers, table)
    assert set(table.split[rows].tolist()) == {SPLIT_NAMES.index("val")}


def test_a_suspected_group_is_called_as_its_finding_calls_it():
    names = ("with the local pattern", "without the local pattern")
    classes = ("ant", "bee")
    assert group_name("1,0", "pseudo", classes, None, names) == "bee, with the local pattern"
    assert group_name("1,0", "pseudo", classes, None) == "bee, value 0"
    assert group_name("1,0", "true", classes, ("sea", "land"), names) == "bee, sea"
