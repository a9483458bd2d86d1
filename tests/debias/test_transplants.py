"""Exchanged images as members of their groups: who trains, with which labels."""

from dataclasses import replace

import numpy as np
import torch

from d2cp.debias.cross_fit import HeldOut
from d2cp.debias.evidence import evidence
from d2cp.debias.labels import Labels, sides, with_validation
from d2cp.debias.transplants import Transplants

Y = np.array([0, 0, 0, 1, 1, 1, 0, 1])
A = np.array([0, 0, 1, 1, 1, 0, 0, 1])
LABELS = Labels(
    y=Y,
    classes=2,
    train=np.arange(6),
    val=np.array([6, 7]),
    a=A,
    shares=np.stack([1 - 0.8 * A - 0.1, 0.8 * A + 0.1], axis=1),
    y_xrm=np.array([0, 0, 1, 0, 0, 1, 0, 0]),
    a_xrm=np.array([1, 1, 0, 1, 1, 0, 1, 1]),
)
ROWS = np.array([0, 3, 5, 7])
MADE = Transplants(
    rows=ROWS,
    values=1 - A[ROWS],
    exchanged=torch.full((4, 3), 1.0),
    controls=torch.full((4, 3), 2.0),
)


def test_features_and_labels_stand_in_the_same_rows():
    whole = MADE.behind(torch.zeros(8, 3))
    joined = MADE.join(LABELS)
    assert whole.shape == (16, 3) and len(joined.y) == len(joined.a) == 16
    assert whole[:, 0].tolist() == [0.0] * 8 + [1.0] * 4 + [2.0] * 4
    assert joined.y[8:].tolist() == [0, 1, 1, 1, 0, 1, 1, 1]
    assert joined.a[8:].tolist() == [1, 0, 1, 0, 0, 1, 0, 1]
    assert np.array_equal(joined.y[:8], Y) and np.array_equal(joined.a[:8], A)


def test_what_was_made_of_a_training_image_trains_and_nothing_else():
    assert MADE.join(LABELS).train.tolist() == [0, 1, 2, 3, 4, 5, 8, 9, 10, 12, 13, 14]
    fold = replace(LABELS, train=np.array([0, 1, 2]))
    assert MADE.join(fold).train.tolist() == [0, 1, 2, 8, 12]
    refitted = MADE.join(with_validation(LABELS)).train
    assert set(refitted) == set(range(16))
    assert np.array_equal(MADE.join(LABELS).val, LABELS.val)


def test_the_donors_value_is_sure_a_controls_is_as_sure_as_its_images():
    joined = MADE.join(LABELS)
    assert np.array_equal(joined.shares[8:12], np.eye(2)[1 - A[ROWS]])
    assert np.array_equal(joined.shares[12:], LABELS.shares[ROWS])
    assert MADE.join(replace(LABELS, shares=None)).shares is None


def test_bits_are_those_of_the_group_that_an_image_has_joined():
    joined = MADE.join(LABELS)
    # training images of (0, 1), (1, 0), (1, 1), (1, 0) have these bits of y
    assert joined.y_xrm[8:12].tolist() == [1, 1, 0, 1]
    assert joined.y_xrm[12:].tolist() == LABELS.y_xrm[ROWS].tolist()
    assert joined.a_xrm[8:12].tolist() == [0, 0, 1, 0]
    without = replace(LABELS, y_xrm=None, a_xrm=None)
    assert MADE.join(without).y_xrm is None


def test_what_is_made_of_images_held_out_is_held_out():
    held = MADE.held(np.array([3, 7]), 8)
    assert held.tolist() == [3, 7, 9, 11, 13, 15]
    assert MADE.origin(held, 8).tolist() == [3, 7, 3, 7, 3, 7]
    assert MADE.is_control(held, 8).tolist() == [False] * 4 + [True] * 2
    assert not set(held) & set(MADE.join(replace(LABELS, train=np.array([0, 1, 2, 4, 5]))).train)


def test_against_goes_what_has_not_the_usual_value_of_its_class():
    sure = replace(LABELS, shares=None)
    assert MADE.against(sure)[:8].tolist() == (sides(LABELS) % 2).tolist()
    assert MADE.against(sure)[8:].tolist() == [1, 1, 0, 1, 0, 0, 1, 0]
    assert np.allclose(MADE.against(LABELS)[8:12], [1, 1, 0, 1])
    assert np.allclose(MADE.against(LABELS)[12:], [0.1, 0.1, 0.9, 0.1])


ANSWERED = np.array([6, 7, 0, 3])
EVERY = MADE.held(ANSWERED, 8)  # 7, 0 and 3 were exchanged


def answers(right: np.ndarray) -> HeldOut:
    """Two candidates that answer alike."""
    y = MADE.join(LABELS).y[EVERY]
    same = np.where(right, y, 1 - y)
    return HeldOut(EVERY, np.array([1]), np.stack([same, same])[:, None])


def test_evidence_keeps_images_as_they_are_and_exchanged_ones_apart():
    real, control = EVERY < 8, MADE.is_control(EVERY, 8)
    leans, does_not = answers(real | control), answers(np.ones(len(EVERY), dtype=bool))
    found = evidence(leans, does_not, LABELS, MADE)
    assert found.rows.tolist() == ANSWERED.tolist()
    assert found.erm.tolist() == found.d2cp.tolist() == [1.0] * 4
    # images with the usual value: as they are, less what the cue changes
    assert sorted(found.exchanged) == [0, 3, 7]
    assert found.erm_exchanged.tolist() == [0.0] * 3
    assert found.d2cp_exchanged.tolist() == [1.0] * 3


def test_what_cutting_costs_is_no_leaning():
    """Wrong with the cue exchanged, and as wrong where anything else was cut in."""
    found = evidence(answers(EVERY < 8), answers(EVERY < 8), LABELS, MADE)
    assert found.erm_exchanged.tolist() == found.d2cp_exchanged.tolist() == [1.0] * 3


def test_without_exchanged_images_there_is_no_such_evidence():
    alone = HeldOut(ANSWERED, np.array([1]), LABELS.y[ANSWERED][None, None])
    found = evidence(alone, alone, LABELS)
    assert found.d2cp.tolist() == [1.0] * 4 and not len(found.exchanged)


def test_what_judges_is_as_it_was():
    """Sides are of the images as they are: exchanged ones would make every value as usual."""
    assert sides(LABELS).tolist() == [0, 0, 1, 2, 2, 3, 0, 2]
    counts = np.bincount(MADE.join(LABELS).pseudo_groups()[MADE.join(LABELS).train])
    assert counts.min() > np.bincount(LABELS.pseudo_groups()[LABELS.train]).min()
