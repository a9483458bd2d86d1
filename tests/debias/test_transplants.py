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


def test_exchanged_images_of_those_held_out_help_to_choose():
    held = MADE.held(np.array([3, 7]), 8)
    assert held.tolist() == [3, 7, 9, 11]
    assert MADE.origin(held, 8).tolist() == [3, 7, 3, 7]
    assert not set(held) & set(MADE.join(replace(LABELS, train=np.array([0, 1, 2, 4, 5]))).train)


def test_against_goes_what_has_not_the_usual_value_of_its_class():
    sure = replace(LABELS, shares=None)
    assert MADE.against(sure)[:8].tolist() == (sides(LABELS) % 2).tolist()
    assert MADE.against(sure)[8:].tolist() == [1, 1, 0, 1, 0, 0, 1, 0]
    assert np.allclose(MADE.against(LABELS)[8:12], [1, 1, 0, 1])
    assert np.allclose(MADE.against(LABELS)[12:], [0.1, 0.1, 0.9, 0.1])


def test_evidence_is_of_images_as_they_are():
    """Right on every exchanged image and wrong on all as they are: nothing speaks for it."""
    rows = np.array([6, 7, 0, 3])
    every = MADE.held(rows, 8)
    y, exchanged = MADE.join(LABELS).y[every], every >= 8
    control = HeldOut(rows, np.array([1]), LABELS.y[rows][None, None])

    def found(right: np.ndarray) -> list[float]:
        answers = np.where(right, y, 1 - y)
        draws = np.stack([answers, answers])[:, None]
        made = evidence(control, HeldOut(every, np.array([1]), draws), LABELS, MADE)
        assert made.rows.tolist() == rows.tolist() and made.erm.tolist() == [1.0] * 4
        return made.d2cp.tolist()

    assert found(exchanged) == [0.0] * 4
    assert found(~exchanged) == [1.0] * 4


def test_what_judges_is_as_it_was():
    """Sides are of the images as they are: exchanged ones would make every value as usual."""
    assert sides(LABELS).tolist() == [0, 0, 1, 2, 2, 3, 0, 2]
    counts = np.bincount(MADE.join(LABELS).pseudo_groups()[MADE.join(LABELS).train])
    assert counts.min() > np.bincount(LABELS.pseudo_groups()[LABELS.train]).min()
