"""The dual-branch model over given features: starts from them, folds without a change."""

from dataclasses import replace

import torch
from torch import nn

from d2cp.config.debias import DebiasConfig
from d2cp.debias.adapters import Adapter, DualAdapter

CONFIG = DebiasConfig(adapter_hidden=5)


def trained(width: int = 12) -> DualAdapter:
    """A model whose every parameter is somewhere."""
    model = DualAdapter.new(width, 3, 2, CONFIG, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


def test_an_adapter_starts_as_the_identity() -> None:
    x = torch.randn(7, 12, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Adapter(12, 5, seed=0)(x), x)


def test_branches_are_drawn_apart_and_again_alike() -> None:
    one, again = (DualAdapter.new(12, 2, 2, CONFIG, seed=3) for _ in range(2))
    assert not torch.equal(one.adapter_y.down.weight, one.adapter_a.down.weight)
    for name, value in one.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])


def test_logits_are_those_of_the_written_out_projection() -> None:
    """W^y P0(W^a) h^y and W^a P0(W^y) h^a, with the projector formed from the pseudo-inverse."""
    model = trained()
    x = torch.randn(9, 12, generator=torch.Generator().manual_seed(2))

    def slow(adapter: Adapter, head: nn.Linear, other: nn.Linear) -> torch.Tensor:
        h = x + torch.relu(x @ adapter.down.weight.T + adapter.down.bias) @ adapter.up.weight.T
        h = h + adapter.up.bias
        w = other.weight
        projector = torch.eye(12) - torch.linalg.pinv(w) @ w
        return h @ projector @ head.weight.T + head.bias

    logits_y, logits_a = model(x)
    torch.testing.assert_close(
        logits_y, slow(model.adapter_y, model.head_y, model.head_a), atol=1e-4, rtol=1e-4
    )
    torch.testing.assert_close(
        logits_a, slow(model.adapter_a, model.head_a, model.head_y), atol=1e-4, rtol=1e-4
    )


def test_folded_branches_give_the_same_logits_and_stay_when_training_goes_on() -> None:
    model = trained()
    x = torch.randn(9, 12, generator=torch.Generator().manual_seed(4))
    logits_y, logits_a = model(x)
    classifier, shortcut = model.classifier(), model.shortcut()
    torch.testing.assert_close(classifier(x), logits_y, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(shortcut(x), logits_a, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        model.adapter_y.up.weight.zero_()
    torch.testing.assert_close(classifier(x), logits_y, atol=1e-4, rtol=1e-4)


def test_heads_have_a_bias_only_where_the_configuration_says_so() -> None:
    model = DualAdapter.new(12, 2, 2, replace(CONFIG, head_bias=False), seed=0)
    assert model.head_y.bias is None and model.classifier().head.bias is None


def test_a_standardised_adapter_reads_its_features_in_their_own_units() -> None:
    x = 5 + 3 * torch.randn(400, 12, generator=torch.Generator().manual_seed(0))
    adapter = Adapter(12, 5, seed=0)
    adapter.standardise(x)
    h = adapter(x)
    torch.testing.assert_close(h.mean(0), torch.zeros(12), atol=1e-4, rtol=0)
    torch.testing.assert_close(h.std(0), torch.ones(12), atol=1e-4, rtol=0)
    again = Adapter(12, 5, seed=1)
    again.load_state_dict(adapter.state_dict())
    torch.testing.assert_close(again(x), h)
