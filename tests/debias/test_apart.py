"""One branch before the other: the gradients and weights of the joint pass, by size alone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import ViTConfig

from d2cp.backbone import backbone_from_config
from d2cp.config.debias import DebiasConfig
from d2cp.core.checkpoint import Checkpointer
from d2cp.debias import branch_logits
from d2cp.debias.branch_logits import one_by_one, prompt_logits
from d2cp.debias.dual_branch import DualBranch
from d2cp.debias.loop import Batch
from d2cp.debias.objective import D2CPObjective
from d2cp.debias.train import train_d2cp
from debias_tiny import CONFIG, backbone, cmnist, labels_of

TABLE, STORE = cmnist()
LABELS = labels_of(TABLE)
IMAGES = torch.rand(16, 3, 28, 28, generator=torch.Generator().manual_seed(0))


def two_steps(config: DebiasConfig) -> tuple[list[Tensor], int]:
    """Losses, terms, gradients and group weights of two steps; how many pieces a step had."""
    model = DualBranch.new(backbone(), 2, 2, config, seed=0)
    logits = prompt_logits(model, backbone(), config, seed=0)
    objective = D2CPObjective(model, logits, LABELS, config)
    found = []
    for step in range(2):
        rows = torch.from_numpy(LABELS.train[16 * step : 16 * step + 16])
        batch = Batch(IMAGES, rows, step, 0)
        loss, terms = objective(batch)
        model.zero_grad()
        loss.backward()
        found += [loss.detach(), torch.tensor(list(terms.values()))]
        found += [p.grad.clone() for p in model.parameters() if p.grad is not None]
        found += [dro.log_q.clone() for dro in objective.dro.values()]
    return found, len(logits(batch))


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("xrm", [True, False])
def test_apart_gives_what_the_joint_pass_gives(
    xrm: bool, heads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, use_xrm=xrm, spurious_heads=heads, head_init=0.3, eta=0.5)
    joint, pieces = two_steps(config)
    assert pieces == 1
    monkeypatch.setattr(branch_logits, "APART", 0)
    apart, pieces = two_steps(config)
    assert pieces == 2
    assert len(joint) == len(apart) and max(t.abs().max() for t in joint) > 0.01
    for one, other in zip(joint, apart, strict=True):
        torch.testing.assert_close(other, one, atol=1e-6, rtol=1e-6)


def test_the_size_decides_and_what_needs_both_branches_stays_joint() -> None:
    with torch.device("meta"):
        large = backbone_from_config(ViTConfig(image_size=224, patch_size=16))
        images = torch.empty(7, 3, 224, 224)
    assert one_by_one(large, images, replace(CONFIG, batch_size=8))
    assert one_by_one(large, images[:1], replace(CONFIG, batch_size=8))  # whatever its share
    assert not one_by_one(large, images, replace(CONFIG, batch_size=4))
    assert not one_by_one(backbone(), IMAGES, CONFIG)
    assert not one_by_one(large, images, replace(CONFIG, projector_grad=True))
    assert not one_by_one(large, images, replace(CONFIG, precision="fp16"))
    with torch.no_grad():
        assert not one_by_one(large, images, CONFIG)


def test_a_training_that_was_stopped_goes_on_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_logits, "APART", 0)

    def train(checkpointer: Checkpointer | None, steps: int) -> dict[str, Tensor]:
        config = replace(CONFIG, max_steps=steps)
        trained = train_d2cp(
            backbone(), STORE, LABELS, config, seed=1, checkpointer=checkpointer, quiet=True
        )
        return trained.model.state_dict()

    whole = train(None, 4)
    train(Checkpointer(tmp_path, "test", every_steps=2), 2)
    resumed = train(Checkpointer(tmp_path, "test", every_steps=2), 4)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
