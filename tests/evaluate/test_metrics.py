import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2cp.evaluate.metrics import bootstrap, group_accuracy, over_seeds
from d2cp.evaluate.result import score


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=60),
    st.dictionaries(st.integers(0, 5), st.integers(1, 50)),
)
def test_against_the_equations_written_out(rows, train):
    right = np.array([r for r, _ in rows])
    groups = np.array([g for _, g in rows])
    accuracies = {}
    for g in set(groups.tolist()):
        members = [r for r, other in rows if other == g]
        accuracies[g] = sum(members) / len(members)
    found = group_accuracy(right, groups)
    assert found.worst == pytest.approx(min(accuracies.values()))
    assert found.mean == pytest.approx(sum(right) / len(right))
    known = {g: n for g, n in train.items() if g in accuracies}
    if known:
        literal = sum(accuracies[g] * n for g, n in known.items()) / sum(known.values())
        assert found.weighted(train) == pytest.approx(literal)
    else:
        assert found.weighted(train) == pytest.approx(found.mean)


def test_no_images_is_an_error_not_a_number():
    with pytest.raises(ValueError, match="no images"):
        group_accuracy(np.array([], dtype=bool), np.array([], dtype=np.int64))


def test_interval_has_the_width_of_a_bootstrap_over_images():
    generator = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], [400, 50, 200])
    right = generator.random(650) < np.array([0.9, 0.7, 0.8])[groups]
    fast = bootstrap(right, groups, {0: 1, 1: 1, 2: 2}, resamples=4000)
    slow = []
    for _ in range(2000):
        rows = np.concatenate(
            [generator.choice(np.flatnonzero(groups == g), (groups == g).sum()) for g in range(3)]
        )
        slow.append(group_accuracy(right[rows], groups[rows]).worst)
    low, high = np.percentile(slow, [2.5, 97.5])
    assert fast["worst_group"].low == pytest.approx(low, abs=0.03)
    assert fast["worst_group"].high == pytest.approx(high, abs=0.03)
    assert fast["mean"].low < right.mean() < fast["mean"].high


def test_same_seed_same_interval():
    right, groups = np.array([True, False, True, True]), np.array([0, 0, 1, 1])
    assert bootstrap(right, groups, {}, seed=3) == bootstrap(right, groups, {}, seed=3)


def test_over_seeds():
    assert str(over_seeds([0.9, 0.92, 0.94])) == "92.00 ± 2.00"
    assert str(over_seeds([0.9])) == "90.00"


def test_result_has_the_documented_keys():
    y, a = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    result = score(
        np.array([0, 1, 1, 1]),
        y,
        a,
        2,
        np.array([0, 0, 3]),
        method="erm",
        seed=1,
        split="test",
        selection="val_worst_class",
        grouping="true",
    ).to_dict()
    assert result["groups"]["0,1"] == {"n": 1, "accuracy": 0.0}
    assert result["worst_group"] == 0.0 and result["mean"] == 0.75
    assert result["train_weighted_mean"] == 1.0
    assert result["intervals"]["mean"][0] <= 0.75 <= result["intervals"]["mean"][1]


def test_without_attributes_the_groups_are_the_classes():
    y = np.array([0, 1, 2])
    result = score(
        y, y, None, 4, y, method="m", seed=0, split="test", selection="s", grouping="true"
    ).to_dict()
    assert result["grouping"] == "class"
    assert set(result["groups"]) == {"0,0", "1,0", "2,0"}
