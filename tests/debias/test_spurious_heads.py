"""Several spurious heads: each reads what those before it leave, and P0^a removes them all."""

from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from d2cp.config.debias import DebiasConfig
from d2cp.debias.adapters import DualAdapter
from d2cp.debias.loop import decayed_parameters
from d2cp.debias.objective import over_heads

CONFIG = DebiasConfig(adapter_hidden=5, spurious_heads=3)
GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(9, 16, generator=GENERATOR)


def model(config: DebiasConfig = CONFIG) -> DualAdapter:
    made = DualAdapter.new(16, 2, 2, config, seed=0)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=GENERATOR))
    return made


def removed(weight: torch.Tensor) -> torch.Tensor:
    """P0 written out."""
    return torch.eye(weight.shape[1]) - torch.linalg.pinv(weight) @ weight


def test_each_head_reads_what_those_before_it_leave() -> None:
    made = model()
    logits_y, logits_a = made(X)
    assert logits_a.shape == (9, 3, 2)
    w_y, w_a, b_a = made.head_y.weight, made.head_a.weight, made.head_a.bias
    h = made.adapter_a(X) @ removed(w_y)
    for index in range(3):
        rows = slice(2 * index, 2 * index + 2)
        seen = h if index == 0 else h @ removed(w_a[: 2 * index])
        expected = seen @ w_a[rows].T + b_a[rows]
        torch.testing.assert_close(logits_a[:, index], expected, atol=1e-3, rtol=1e-3)
    expected = made.adapter_y(X) @ removed(w_a) @ w_y.T + made.head_y.bias
    torch.testing.assert_close(logits_y, expected, atol=1e-3, rtol=1e-3)


def test_what_is_deployed_is_free_of_every_spurious_direction() -> None:
    made = model()
    classifier = made.classifier()
    assert (classifier.head.weight @ made.head_a.weight.T).abs().max() < 1e-3
    torch.testing.assert_close(classifier(X), made(X)[0], atol=1e-3, rtol=1e-3)
    shortcut = made.shortcut()
    assert shortcut.head.out_features == 2
    torch.testing.assert_close(shortcut(X), made(X)[1][:, 0], atol=1e-3, rtol=1e-3)


def test_the_loss_of_several_heads_is_their_mean() -> None:
    logits = torch.randn(9, 3, 2, generator=GENERATOR)
    labels = torch.randint(2, (9,), generator=GENERATOR)
    one_by_one = [cross_entropy(logits[:, k], labels, reduction="none") for k in range(3)]
    torch.testing.assert_close(over_heads(logits, labels), torch.stack(one_by_one).mean(0))
    torch.testing.assert_close(over_heads(logits[:, 0], labels), one_by_one[0])


def test_only_the_spurious_head_has_a_decay_of_its_own() -> None:
    made = model()
    whole = list(made.parameters())
    assert decayed_parameters(made, whole, CONFIG) == [{"params": whole}]
    rest, own = decayed_parameters(made, whole, replace(CONFIG, spurious_decay=0.3))
    assert own["weight_decay"] == 0.3 and own["params"][0] is made.head_a.weight
    assert len(rest["params"]) == len(whole) - 1 and "weight_decay" not in rest
