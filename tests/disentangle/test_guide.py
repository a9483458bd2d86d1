import functools
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from d2cp.config.strict import changed
from d2cp.core.device import make_accelerator
from d2cp.core.progress import progress
from d2cp.data.pixels import signed_view
from d2cp.disentangle.concept_loop import Watch
from d2cp.disentangle.concept_training import draw_weights
from d2cp.disentangle.correlation import squared_correlation, squared_correlation_within
from d2cp.disentangle.guide import cross_fitted, generalised_cross_entropy
from d2cp.disentangle.guide_training import assign_folds, augment, train_guide

QUIET = Watch(None, functools.partial(progress, quiet=True))


def guide_of(images, rows, y, config):
    return train_guide(images, rows, y, config, 0, make_accelerator(), QUIET)[0]


def test_generalised_cross_entropy_literally_and_its_limits():
    logits, labels = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    p = logits.softmax(1)
    for i, value in enumerate(generalised_cross_entropy(logits, labels, 0.7)):
        torch.testing.assert_close(value, (1 - p[i, labels[i]] ** 0.7) / 0.7)
    plain = F.cross_entropy(logits, labels, reduction="none")
    torch.testing.assert_close(generalised_cross_entropy(logits, labels, 0.0), plain)
    torch.testing.assert_close(
        generalised_cross_entropy(logits, labels, 1e-4), plain, rtol=1e-2, atol=1e-3
    )


def test_squared_correlation_agrees_with_numpy():
    draw = torch.Generator().manual_seed(0)
    free, guided = torch.randn(50, 3, generator=draw), torch.randn(50, 2, generator=draw)
    free[:, 0] = 3 * guided[:, 1] + 1
    whole = np.corrcoef(np.concatenate([free, guided], axis=1), rowvar=False)[:3, 3:]
    assert abs(float(squared_correlation(free, guided)) - (whole**2).mean()) < 1e-4
    assert float(squared_correlation(torch.ones(50, 1), guided)) == 0


def test_squared_correlation_within_agrees_with_numpy():
    scalars = torch.randn(40, 5, generator=torch.Generator().manual_seed(3))
    scalars[:, 1] += 2 * scalars[:, 0]
    whole = np.corrcoef(scalars.numpy().T) ** 2
    pairs = [whole[i, j] for i in range(5) for j in range(5) if i != j]
    assert abs(float(squared_correlation_within(scalars)) - np.mean(pairs)) < 1e-4
    assert float(squared_correlation_within(scalars[:, :1])) == 0
    copies = scalars[:, :1].repeat(1, 4)
    assert float(squared_correlation_within(copies)) > 0.99


def test_the_penalties_have_the_slope_of_their_value():
    draw = torch.Generator().manual_seed(1)
    free = torch.randn(9, 3, generator=draw, dtype=torch.float64, requires_grad=True)
    guided = torch.randn(9, 2, generator=draw, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: squared_correlation(x, guided), free)
    assert torch.autograd.gradcheck(squared_correlation_within, free)


@pytest.mark.parametrize("seed", range(5))
def test_steps_down_the_penalty_part_the_copies(seed):
    """Over 300 seeds every step lowers it by .007 or more, and twenty to .66 of it or less."""
    draw = torch.Generator().manual_seed(seed)
    common = 2 * torch.randn(64, 1, generator=draw)
    scalars = (torch.randn(64, 4, generator=draw) + common).requires_grad_()
    values = []
    for _ in range(21):
        penalty = squared_correlation_within(scalars)
        values.append(penalty.item())
        (slope,) = torch.autograd.grad(penalty, scalars)
        with torch.no_grad():
            scalars -= 10 * slope
    assert all(after < before for before, after in itertools.pairwise(values))
    assert values[-1] < 0.8 * values[0]


def test_cross_fitted_takes_the_network_that_did_not_see_the_image():
    each = torch.tensor([[[1.0], [2.0], [3.0]], [[10.0], [20.0], [30.0]]])
    out = cross_fitted(each, torch.tensor([0, 1, -1]))
    assert out.squeeze(1).tolist() == [1.0, 20.0, 16.5]


def test_folds_are_even_and_depend_on_the_seed():
    folds = assign_folds(11, 2, seed=0)
    assert np.bincount(folds).tolist() == [6, 5]
    assert not np.array_equal(folds, assign_folds(11, 2, seed=1))


def test_augmentation_is_fixed_by_its_generator_and_keeps_the_range(tiny):
    images = torch.rand(5, 3, 16, 16)
    config = changed(tiny, {"guide.shift": 0.2, "guide.flip": True})
    first = augment(images, torch.Generator().manual_seed(0), config)
    again = augment(images, torch.Generator().manual_seed(0), config)
    other = augment(images, torch.Generator().manual_seed(1), config)
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert first.shape == images.shape and first.min() >= 0 and first.max() <= 1
    off = changed(tiny, {"guide.shift": 0.0, "guide.flip": False})
    assert torch.equal(augment(images, torch.Generator(), off), images)


def test_an_image_s_own_label_does_not_reach_the_network_that_scores_it(tiny, toy):
    config = changed(tiny, {"guide.steps": 5})
    before = guide_of(toy.images, toy.rows, toy.y, config)
    flipped = toy.y.copy()
    flipped[0] = 1 - flipped[0]
    after = guide_of(toy.images, toy.rows, flipped, config)
    images = signed_view(toy.images, toy.rows[:4])
    own = int(before.folds[0])
    assert torch.equal(before.nets[own](images), after.nets[own](images))
    assert not torch.equal(before.nets[1 - own](images), after.nets[1 - own](images))


def test_the_guide_sees_the_shortcut_on_images_whose_label_contradicts_it(tiny, toy):
    config = changed(tiny, {"guide.steps": 80, "guide.width": 8, "guide.batch": 32})
    guide = guide_of(toy.images, toy.rows, toy.y, config)
    with torch.no_grad():
        scalars = guide.scalars(signed_view(toy.images, toy.rows), toy.rows)[:, 0].numpy()
    conflict = toy.y != toy.a
    assert conflict.sum() > 10
    assert ((scalars > 0) == toy.a)[conflict].mean() > 0.9
    np.testing.assert_allclose(scalars.std(), 1.0, atol=0.1)


def test_draws_make_class_and_shortcut_independent(tiny, toy):
    config = changed(tiny, {"guide.steps": 80, "guide.width": 8, "guide.batch": 32})
    guide, logits = train_guide(toy.images, toy.rows, toy.y, config, 0, make_accelerator(), QUIET)
    foreseen = cross_fitted(logits, guide.folds).argmax(1).numpy()
    weights = draw_weights(foreseen, toy.y, 1e9)
    groups = 2 * toy.y + toy.a
    shares = [weights[groups == g].sum() / weights.sum() for g in range(4)]
    assert abs(np.corrcoef(toy.y, toy.a)[0, 1]) > 0.7
    np.testing.assert_allclose(shares, 0.25, atol=0.06)
    assert draw_weights(foreseen, toy.y, 1.0) is None


def test_scalars_of_training_rows_come_from_their_fold_and_others_from_all(tiny, toy):
    config = changed(tiny, {"guide.steps": 5})
    rows = 3 * toy.rows + 7
    by_row = dict(zip(rows.tolist(), toy.images, strict=True))

    class Store:
        def __getitem__(self, wanted):
            return np.stack([by_row[row] for row in wanted.tolist()])

    guide, logits = train_guide(Store(), rows, toy.y, config, 0, make_accelerator(), QUIET)
    known = dict(zip(rows.tolist(), guide.folds.tolist(), strict=True))
    asked = np.array([rows[5], 0, rows[0], rows[-1] + 1, rows[-1]])
    assert guide.fold_of(asked).tolist() == [known.get(row, -1) for row in asked.tolist()]
    assert guide.fold_of(asked[:0]).tolist() == []
    with torch.no_grad():
        one_by_one = guide.scalars(signed_view(Store(), rows), rows)
    torch.testing.assert_close(guide.scalars_from(logits, guide.folds), one_by_one)


def test_the_guide_tells_left_from_right(tiny):
    """The same mark at either side: a network blind to places could not."""
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, 200)
    images = draw.integers(0, 60, (200, 16, 16, 3)).astype(np.uint8)
    for i, side in enumerate(y):
        column = 1 + draw.integers(0, 3) + 9 * side
        images[i, 5:8, column : column + 3] = 220
    config = changed(tiny, {"guide.steps": 80, "guide.width": 8, "guide.batch": 32})
    rows = np.arange(200)
    guide = guide_of(images, rows, y, config)
    with torch.no_grad():
        scalars = guide.scalars(signed_view(images, rows), rows)[:, 0].numpy()
    assert ((scalars > 0) == y).mean() > 0.9
