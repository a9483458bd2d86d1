import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from d2cp.evaluate.metrics import group_accuracy, over_seeds
from d2cp.evaluate.result import group_name, score


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
    members = np.repeat(list(train), list(train.values())).astype(np.int64)
    found = group_accuracy(right, groups, members)
    assert found.worst == pytest.approx(min(accuracies.values()))
    assert found.mean(found.n) == pytest.approx(sum(right) / len(right))
    known = {g: n for g, n in train.items() if g in accuracies}
    if known:
        literal = sum(accuracies[g] * n for g, n in known.items()) / sum(known.values())
        assert found.mean(found.train_weight) == pytest.approx(literal)
    else:
        assert found.mean(found.train_weight) == pytest.approx(found.mean(found.n))


def test_no_images_is_an_error_not_a_number():
    none = np.array([], dtype=np.int64)
    with pytest.raises(ValueError, match="no images"):
        group_accuracy(np.array([], dtype=bool), none, none)


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
        class_names=("cat", "dog"),
        attribute_names=("indoors", "outdoors"),
    ).to_dict()
    assert result["groups"]["0,1"] == {"name": "cat, outdoors", "n": 1, "accuracy": 0.0}
    assert result["worst_group"] == 0.0 and result["mean"] == 0.75
    assert result["train_weighted_mean"] == 1.0
    assert result["intervals"]["mean"][0] <= 0.75 <= result["intervals"]["mean"][1]


def test_without_attributes_the_groups_are_the_classes():
    y = np.array([0, 1, 2])
    result = score(
        y,
        y,
        None,
        4,
        y,
        method="m",
        seed=0,
        split="test",
        selection="s",
        grouping="true",
        class_names=("a", "b", "c"),
        attribute_names=None,
    ).to_dict()
    assert result["grouping"] == "class"
    assert {key: g["name"] for key, g in result["groups"].items()} == {
        "0,0": "a",
        "1,0": "b",
        "2,0": "c",
    }


def test_a_group_is_named_by_what_is_known_of_it():
    names = (("cat", "dog"), ("indoors", "outdoors"))
    assert group_name("1,0", "true", *names) == "dog, indoors"
    assert group_name("1,0", "pseudo", *names) == "dog, value 0"
    assert group_name("1,0", "class", *names) == "dog"
    assert group_name("1", "true", *names) == "dog"
