"""A solved class head: the weights of its loss, its minimum, and what it cannot read."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from d2cp.debias.class_solution import class_weights
from d2cp.debias.labels import Labels, with_validation
from d2cp.debias.projection import row_space
from d2cp.debias.soft_values import soft_weights
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_head import head_loss
from d2cp.debias.train import plain, train_on_features
from d2cp.errors import ConfigError
from debias_tiny import CONFIG

N, WIDTH = 240, 8
SETTINGS = replace(
    CONFIG,
    tier="features",
    class_fit="solved",
    class_decay=0.05,
    alpha=1.0,
    spurious_heads=2,
    spurious_decay=0.05,
)


def labels() -> Labels:
    """Class and value agree on nine of ten images."""
    rows = np.arange(N)
    y = rows % 2
    a = np.where(rows % 20 < 2, 1 - y, y)
    bits = (rows % 7 == 0).astype(np.int64)
    return Labels(
        y=y, classes=2, train=rows[60:], val=rows[:60], a=a, values=2, y_xrm=bits, a_xrm=bits
    )


def features(known: Labels) -> torch.Tensor:
    """The value shows in the first axis, the class weakly in the second."""
    x = np.random.default_rng(0).normal(size=(N, WIDTH))
    x[:, 0] = 2 * (2 * known.a - 1) + 0.5 * x[:, 0]
    x[:, 1] += 0.7 * (2 * known.y - 1)
    return torch.from_numpy(x).float()


def solve(known: Labels, config=SETTINGS):
    return train_on_features(features(known), known, config, seed=0, backbone_parameters=1)


def test_the_weights_are_those_of_the_terms_with_their_groups_in_equal_shares() -> None:
    known = labels()
    config = replace(SETTINGS, weight_y=2.0, weight_xrm_y=1.0)
    slow = np.zeros(len(known.train))
    for weight, groups in ((2 / 3, known.pseudo_groups()), (1 / 3, known.target_groups())):
        of_train = groups[known.train]
        for g in np.unique(of_train):
            inside = of_train == g
            slow[inside] += weight / len(np.unique(of_train)) / inside.sum()
    np.testing.assert_allclose(class_weights(known, config), slow)
    alone = class_weights(known, plain(config))
    np.testing.assert_allclose(alone, np.full(len(alone), 1 / len(alone)))


def test_unsure_values_weigh_as_the_sampler_draws_them() -> None:
    known = labels()
    shares = np.random.default_rng(1).dirichlet([1, 1], N)
    soft = replace(known, shares=shares)
    expected = soft_weights(known.y[known.train], shares[known.train], 1.0)
    config = replace(SETTINGS, use_xrm=False)
    np.testing.assert_allclose(class_weights(soft, config), expected / expected.sum())
    hard = class_weights(soft, replace(config, soft_values=False))
    assert not np.allclose(hard, class_weights(soft, config))


def test_no_step_in_any_direction_lowers_the_loss_and_no_step_was_taken() -> None:
    known = labels()
    found = solve(known)
    assert isinstance(found.model, SolvedDualAdapter) and found.model.directions >= 1
    assert found.fitted.steps == 0 and found.fitted.best_score is not None
    with torch.no_grad():
        x = found.model.class_inputs(features(known)[torch.from_numpy(known.train)]).double()
        head = torch.cat([found.model.head_y.weight, found.model.head_y.bias[:, None]], 1).double()
    y = torch.from_numpy(known.y[known.train])
    shares = torch.from_numpy(class_weights(known, SETTINGS))

    def loss(moved: torch.Tensor) -> float:
        return float(head_loss(moved, x, y, shares, SETTINGS.class_decay))

    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        step = torch.randn(head.shape, generator=generator, dtype=torch.float64)
        assert loss(head + 0.01 * step) > loss(head)


def test_the_head_does_not_read_what_was_removed_and_one_branch_does() -> None:
    known = labels()
    found, one = solve(known), solve(known, replace(SETTINGS, dual_branch=False))
    assert isinstance(found.model, SolvedDualAdapter)
    direction = row_space(found.model.head_a.weight)[:, 0] * found.model.adapter_y.scale
    x = features(known)[:50]
    for model, moved in ((found.classifier(), False), (one.classifier(), True)):
        with torch.no_grad():
            change = (model(x + 3 * direction) - model(x)).abs().max()
        assert (change > 0.05) == moved


def test_an_adapter_that_stays_the_identity_counts_no_parameter() -> None:
    found = solve(labels())
    head = 2 * WIDTH + 2
    assert found.parameters.branch == head
    assert found.parameters.trained == head + 2 * head  # two spurious heads


def test_the_average_is_the_mean_of_both_read_outs_and_plain_training_has_one() -> None:
    known = labels()
    heads = {}
    for name in ("balanced", "additive", "average"):
        model = solve(known, replace(SETTINGS, read_out=name)).model
        heads[name] = model.head_y.weight.detach()
    assert not torch.allclose(heads["balanced"], heads["additive"], atol=1e-2)
    torch.testing.assert_close(heads["average"], (heads["balanced"] + heads["additive"]) / 2)
    one, other = (
        solve(known, replace(plain(SETTINGS), read_out=n)) for n in ("balanced", "average")
    )
    assert torch.equal(one.model.head.weight, other.model.head.weight)


def test_validation_images_join_and_none_is_left_to_select_by() -> None:
    known = labels()
    both = with_validation(known)
    assert sorted(both.train) == list(range(N)) and len(both.val) == 0
    found = solve(both)
    assert found.fitted.best_score is None
    assert not torch.equal(found.model.head_y.weight, solve(known).model.head_y.weight)


def test_a_joint_branch_trains_its_class_head_and_a_solved_one_needs_a_bias() -> None:
    assert not replace(SETTINGS, spurious_fit="joint").solves_class
    assert not replace(SETTINGS, tier="prompts").solves_class
    assert plain(SETTINGS).solves_class
    with pytest.raises(ConfigError, match="head_bias"):
        replace(SETTINGS, head_bias=False)
