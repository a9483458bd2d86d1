"""A solved spurious branch: the minimum, as many directions as can be read, and none too many."""

from dataclasses import replace

import numpy as np
import torch

from d2cp.config.debias import DebiasConfig
from d2cp.debias.adapters import AdapterClassifier
from d2cp.debias.loop import decayed_parameters
from d2cp.debias.sampler import sample_weights
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_head import head_loss, solve_head
from d2cp.debias.spurious_solution import SpuriousSolution, solve_spurious

CONFIG = DebiasConfig(adapter_hidden=5, spurious_heads=3)
WIDTH = 10


def data(signals: int, n: int = 400) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Features, attribute and groups; the class agrees with the attribute on nine images of ten. It
    shows in the first `signals` axes, in the second coarsely, so that a head which reads the first
    leaves most of the second."""
    draw = np.random.default_rng(0)
    a = draw.integers(2, size=n)
    y = np.where(draw.random(n) < 0.9, a, 1 - a)
    x = draw.normal(size=(n, WIDTH))
    for axis, (signal, noise) in enumerate([(1.0, 0.2), (4.0, 2.0)][:signals]):
        x[:, axis] = signal * (2 * a - 1) + noise * x[:, axis]
    return torch.from_numpy(x).float(), a, 2 * y + a


def solution(signals: int, heads: int = 3) -> SpuriousSolution:
    x, a, groups = data(signals)
    return solve_spurious(x, a, groups, values=2, heads=heads, decay=0.01, seed=0)


def test_a_head_is_the_minimum_that_small_steps_reach() -> None:
    x, a, groups = data(2, n=60)
    labels = torch.from_numpy(a)
    found = solve_head(x.double(), labels, sample_weights(groups, 1.0), 2, 0.5)
    sizes = np.bincount(groups)
    shares = torch.from_numpy(1 / sizes[groups] / np.count_nonzero(sizes))
    slow = torch.zeros(2, WIDTH + 1, dtype=torch.float64, requires_grad=True)
    for _ in range(3000):
        loss = head_loss(slow, x.double(), labels, shares, 0.5)
        (gradient,) = torch.autograd.grad(loss, slow)
        slow = (slow - 0.05 * gradient).detach().requires_grad_()
    torch.testing.assert_close(found[:, :-1], slow[:, :-1].detach(), atol=1e-4, rtol=1e-3)


def test_directions_are_added_while_held_out_images_can_be_read() -> None:
    for signals in (0, 1):
        found = solution(signals)
        assert found.kept == signals and len(found.read) == signals + 1
        assert found.read[-1] < 0.65 <= min((*found.read[:-1], 1.0))
        assert not found.weight[2 * signals :].any()
    assert solution(2).kept >= 2 and solution(2, heads=1).kept == 1


def solved(kept: SpuriousSolution) -> SolvedDualAdapter:
    model = SolvedDualAdapter.new(WIDTH, 3, 2, CONFIG, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for part in (*model.adapter_y.parameters(), *model.head_y.parameters()):
            part.copy_(torch.randn(part.shape, generator=generator))
    model.install(kept)
    return model


def test_what_is_deployed_cannot_see_a_spurious_direction() -> None:
    found = solution(2)
    model, (x, _, _) = solved(found), data(2)
    assert model.directions == found.kept >= 2
    classifier = model.classifier()
    torch.testing.assert_close(classifier(x), model(x)[0], atol=1e-4, rtol=1e-4)
    moved = x + 5 * found.weight[0] - 3 * found.weight[2]
    torch.testing.assert_close(classifier(moved), classifier(x), atol=1e-3, rtol=1e-3)
    assert model.shortcut() is not None
    torch.testing.assert_close(model.shortcut()(x), model(x)[1])


def test_with_nothing_to_remove_it_is_the_single_branch() -> None:
    model, (x, _, _) = solved(solution(0)), data(0)
    single = AdapterClassifier(model.adapter_y, model.head_y)
    assert model.directions == 0
    assert torch.equal(model(x)[0], single(x)) and torch.equal(model.classifier()(x), single(x))


def test_only_the_class_branch_is_trained() -> None:
    model = solved(solution(1))
    named = [name for name, part in model.named_parameters() if part.requires_grad]
    assert named and all("_y." in name for name in named)
    parameters = [part for part in model.parameters() if part.requires_grad]
    groups = decayed_parameters(model, parameters, replace(CONFIG, spurious_decay=2.0))
    assert groups == [{"params": parameters}]
