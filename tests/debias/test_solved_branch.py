"""Prompts that start from solved heads: units, projection, folding, what is trained, artifacts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from d2cp.compare.contract import PRESET
from d2cp.compare.footing import Footing
from d2cp.compare.task import Pseudo
from d2cp.compare.tiers import PromptSpace
from d2cp.config.debias import DebiasConfig
from d2cp.core.checkpoint import Checkpointer
from d2cp.debias.branch_logits import prompt_logits
from d2cp.debias.logits import predict_features, predict_logits
from d2cp.debias.loop import Batch
from d2cp.debias.objective import D2CPObjective
from d2cp.debias.prompts import prompted_features
from d2cp.debias.solved_branch import SolvedDualBranch
from d2cp.debias.solved_start import install_start
from d2cp.debias.train import Trained, plain, train_d2cp
from d2cp.debias.trained_files import Artifact, load_artifact, save_artifact
from d2cp.errors import ConfigError
from d2cp.methods.d2cp import D2cp
from debias_tiny import CONFIG, backbone, cmnist, labels_of

TABLE, STORE = cmnist()
LABELS = labels_of(TABLE)
SOLVED = replace(CONFIG, prompt_start="solved", spurious_heads=3)
IMAGES = torch.rand(5, 3, 28, 28, generator=torch.Generator().manual_seed(0))


def started(config: DebiasConfig = SOLVED) -> SolvedDualBranch:
    model = SolvedDualBranch.new(backbone(), LABELS.classes, LABELS.values, config, seed=1)
    branch, size = model.untrained(), config.image_size
    h = predict_features(branch, backbone(), STORE, LABELS.train, image_size=size)
    assert install_start(model, h, LABELS, config, seed=1) >= 1
    return model


def train(directory: Path | None = None) -> Trained:
    checkpointer = Checkpointer(directory, "test", every_steps=3) if directory else None
    return train_d2cp(
        backbone(), STORE, LABELS, SOLVED, seed=1, checkpointer=checkpointer, quiet=True
    )


def literal_logits(model: SolvedDualBranch, images: Tensor) -> Tensor:
    """W^y P0^a (h - mean) / scale, with the D x D projector written out."""
    rows = model.head_a.weight
    rows = rows[rows.norm(dim=1) > 0]
    projector = torch.eye(rows.shape[1]) - torch.linalg.pinv(rows) @ rows
    x = (prompted_features(backbone(), model.prompts, images)[0] - model.mean) / model.scale
    return x @ projector @ model.head_y.weight.T + model.head_y.bias


def test_logits_are_those_of_the_equation_and_fold_into_one_head() -> None:
    model = started()
    with torch.no_grad():
        expected = literal_logits(model, IMAGES)
        assert torch.allclose(model.target(backbone(), IMAGES), expected, atol=1e-4)
        assert torch.allclose(model.classifier()(backbone(), IMAGES), expected, atol=1e-4)


def test_at_the_start_both_heads_read_their_labels_and_the_class_is_blind_to_the_value() -> None:
    model = started()
    rows = LABELS.train

    def right(head: torch.nn.Module, labels: np.ndarray) -> float:
        logits = predict_logits(head, backbone(), STORE, rows, image_size=SOLVED.image_size)
        return float((logits.argmax(1) == labels[rows]).mean())

    assert LABELS.a is not None
    assert right(model.shortcut(), LABELS.a) > 0.9
    assert right(model.classifier(), LABELS.y) > 0.6
    folded, spurious = model.classifier().head.weight, model.shortcut().head.weight
    inside = (folded * model.scale) @ (spurious * model.scale).T  # in the units of the start
    assert inside.abs().max() < 1e-4 * folded.norm() * spurious.norm() * model.scale.max() ** 2


def test_the_class_branch_trains_and_the_spurious_one_stays() -> None:
    before, trained = started(), train()
    after = trained.model
    assert isinstance(after, SolvedDualBranch)
    assert torch.equal(after.head_a.weight, before.head_a.weight)
    assert torch.equal(after.start, before.start)
    assert not torch.equal(after.prompts, before.prompts)
    assert not torch.equal(after.head_y.weight, before.head_y.weight)
    logits = prompt_logits(after, backbone(), SOLVED, seed=0)
    assert set(D2CPObjective(after, logits, LABELS, SOLVED).dro) == {"y", "xrm_y"}


def test_the_start_is_a_state_to_choose_from() -> None:
    still = replace(SOLVED, lr=1e-9, weight_decay=0.0, max_steps=4)
    fitted = train_d2cp(backbone(), STORE, LABELS, still, seed=1, quiet=True).fitted
    assert fitted.history[0]["step"] == 0
    gone = replace(SOLVED, lr=0.5, clip=0.0, max_steps=4)  # far from the solution at once
    trained = train_d2cp(backbone(), STORE, LABELS, gone, seed=1, quiet=True)
    assert trained.fitted.best_score == max(
        (entry["worst_group"], entry["group_mean"]) for entry in trained.fitted.history
    )


def test_resumed_is_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, forward = train(), D2CPObjective.forward

    def killed(self: D2CPObjective, batch: Batch) -> object:
        if batch.step == 7:
            raise KeyboardInterrupt
        return forward(self, batch)

    monkeypatch.setattr(D2CPObjective, "forward", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path)
    monkeypatch.undo()
    resumed = train(tmp_path)
    states = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_artifact_there_and_back(tmp_path: Path) -> None:
    trained = train()
    save_artifact(tmp_path, Artifact(trained, "embedded", ("a", "b"), ("0", "1")))
    found = load_artifact(tmp_path).trained
    with torch.no_grad():
        for one, other in (
            (trained.classifier(), found.classifier()),
            (trained.shortcut(), found.shortcut()),
        ):
            assert torch.equal(one(backbone(), IMAGES), other(backbone(), IMAGES))  # type: ignore


@pytest.mark.parametrize(
    "changes", [{"tier": "features"}, {"dual_branch": False}, {"head_bias": False}]
)
def test_where_nothing_could_be_solved_it_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="prompt_start is solved"):
        replace(SOLVED, **changes)  # type: ignore[arg-type]
    assert plain(SOLVED).prompt_start == "drawn"


@pytest.mark.parametrize(("equal", "most"), [("passes", 600), ("epochs", 600 + len(LABELS.train))])
def test_a_comparison_counts_the_start_as_a_pass(equal: str, most: int) -> None:
    config = replace(SOLVED, batch_size=8, evaluate_per_group=4)
    space = PromptSpace(
        backbone(), STORE, torch.zeros(len(TABLE), backbone().width), config, seed=0
    )
    assert LABELS.a is not None and LABELS.y_xrm is not None and LABELS.a_xrm is not None
    score = np.zeros(len(TABLE))
    mined = Pseudo(LABELS.a, LABELS.values, score, LABELS.y_xrm, LABELS.a_xrm)
    footing = Footing(
        table=TABLE, space=space, config=config, seed=0, budget=600, equal=equal, mined=mined
    )
    task = footing.task(D2cp.spec)
    D2cp().fit(task, {"alpha": PRESET, "eta": PRESET})
    assert most - config.batch_size <= task.passes <= most
    assert any("solved" in note for note in task.notes)
