"""Training end to end on tiny models: resumes, ablation rows, degenerate labels, artifacts."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from d2cp.config.debias import DebiasConfig
from d2cp.core.checkpoint import Checkpointer
from d2cp.debias.branch_logits import prompt_logits
from d2cp.debias.dual_branch import DualBranch
from d2cp.debias.labels import evaluation_rows, pseudo_labels, selection_groups
from d2cp.debias.logits import predict_logits
from d2cp.debias.loop import Batch
from d2cp.debias.objective import D2CPObjective
from d2cp.debias.train import Trained, plain, train_d2cp
from d2cp.debias.trained_files import Artifact, load_artifact, save_artifact
from d2cp.errors import ConfigError, RunError, TrainingError
from debias_tiny import CONFIG, backbone, cmnist, labels_of

TABLE, STORE = cmnist()
LABELS = labels_of(TABLE)


def train(
    config: DebiasConfig = CONFIG, directory: Path | None = None, **labels: object
) -> Trained:
    checkpointer = Checkpointer(directory, "test", every_steps=3) if directory else None
    changed = replace(LABELS, **labels)  # type: ignore[arg-type]
    return train_d2cp(
        backbone(), STORE, changed, config, seed=1, checkpointer=checkpointer, quiet=True
    )


def assert_equal(one: Trained, other: Trained) -> None:
    states = one.model.state_dict(), other.model.state_dict()
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert one.fitted == other.fitted


def test_same_seed_twice_and_resumed_are_equal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train()
    assert_equal(train(), whole)
    forward, calls = D2CPObjective.forward, []

    def killed(self: D2CPObjective, batch: Batch) -> object:
        calls.append(batch.step)
        if batch.step == 7:
            raise KeyboardInterrupt
        return forward(self, batch)

    monkeypatch.setattr(D2CPObjective, "forward", killed)
    with pytest.raises(KeyboardInterrupt):
        train(directory=tmp_path)
    monkeypatch.undo()
    assert_equal(train(directory=tmp_path), whole)
    assert calls == list(range(8))


def test_total_is_the_weighted_sum_of_four_terms() -> None:
    config = replace(CONFIG, weight_a=0.5, weight_xrm_y=2.0, weight_xrm_a=0.0, prompt_dropout=0.0)
    model = DualBranch.new(backbone(), 2, 2, config, seed=0)
    objective = D2CPObjective(
        model, prompt_logits(model, backbone(), config, seed=0), LABELS, config
    )
    rows = torch.from_numpy(LABELS.train[:16])
    loss, terms = objective(Batch(torch.rand(16, 3, 28, 28), rows, 0, 0))
    assert list(terms) == ["loss_y", "loss_a", "loss_xrm_y", "loss_xrm_a"]
    weights = (1.0, 0.5, 2.0, 0.0)
    expected = sum(w * t for w, t in zip(weights, terms.values(), strict=True))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("switches", "terms"),
    [
        ((False, False, False), set()),
        ((True, False, False), {"y"}),
        ((False, False, True), {"xrm_y"}),
        ((True, False, True), {"y", "xrm_y"}),
        ((True, True, False), {"y", "a"}),
        ((True, True, True), {"y", "a", "xrm_y", "xrm_a"}),
    ],
)
def test_rows_of_the_ablation_table(switches: tuple[bool, bool, bool], terms: set[str]) -> None:
    pseudo, dual, xrm = switches
    config = replace(CONFIG, use_pseudo=pseudo, dual_branch=dual, use_xrm=xrm, max_steps=2)
    trained = train(config)
    objective = D2CPObjective(
        trained.model, prompt_logits(trained.model, backbone(), config, seed=0), LABELS, config
    )
    assert set(objective.dro) == terms
    assert trained.fitted.steps == 2
    assert (trained.shortcut() is not None) == dual


def test_erm_is_the_row_without_groups() -> None:
    erm = plain(replace(CONFIG, max_steps=3, selection="val_worst_class"))
    assert not any((erm.use_pseudo, erm.dual_branch, erm.use_xrm))
    without_labels = train(erm, a=None, y_xrm=None, a_xrm=None)
    assert_equal(without_labels, train(erm))


@pytest.mark.parametrize(
    "labels",
    [
        {"a": np.zeros_like(LABELS.y)},  # one value only
        {"a": LABELS.y},  # the pseudo label is the class: two groups empty in the whole set
        {"y_xrm": np.zeros_like(LABELS.y), "a_xrm": np.zeros_like(LABELS.y)},
        {"train": LABELS.train[LABELS.y[LABELS.train] == 0]},  # one class only
        {"train": LABELS.train[:1]},  # one image
        {"val": LABELS.val[:0]},  # a missing split
        {"y": LABELS.y + 2 * (np.arange(len(LABELS.y)) % 2), "classes": 4},
        {"a": np.arange(len(LABELS.y)) % 3, "values": 3},
    ],
)
def test_degenerate_and_larger_label_sets_stay_finite(labels: dict[str, object]) -> None:
    trained = train(replace(CONFIG, max_steps=4), **labels)
    state = trained.model.state_dict()
    assert all(torch.isfinite(value).all() for value in state.values())
    assert trained.classifier().head.out_features == labels.get("classes", 2)


def test_errors_a_user_can_mend() -> None:
    with pytest.raises(TrainingError, match="nothing to train on"):
        train(train=LABELS.train[:0])
    with pytest.raises(ConfigError, match="XRM bits"):
        train(y_xrm=None)
    with pytest.raises(ConfigError, match="true attributes"):
        train(replace(CONFIG, selection="val_true_groups"), true_a=None)
    with pytest.raises(ConfigError, match="dual_branch"):
        DebiasConfig(use_pseudo=False)
    with pytest.raises(ConfigError, match=r"debias\.lr = -1"):
        DebiasConfig(lr=-1)


def test_selection_groups_follow_the_rule() -> None:
    pseudo = 1 - LABELS.y
    labels = replace(LABELS, a=pseudo)
    assert np.array_equal(selection_groups(labels, "val_worst_class"), LABELS.y)
    assert np.array_equal(selection_groups(labels, "val_pseudo_groups"), 2 * LABELS.y + pseudo)
    assert LABELS.true_a is not None
    expected = 2 * LABELS.y + LABELS.true_a
    assert np.array_equal(selection_groups(labels, "val_true_groups"), expected)
    assert np.array_equal(selection_groups(labels, "val_xrm_groups"), labels.target_groups())


def test_validation_is_capped_group_by_group() -> None:
    groups = LABELS.pseudo_groups()
    rows = evaluation_rows(LABELS, groups, 20, seed=0)
    whole = np.bincount(groups[LABELS.val], minlength=4)
    assert np.array_equal(np.bincount(groups[rows], minlength=4), np.minimum(whole, 20))
    assert set(rows) <= set(LABELS.val)
    assert np.array_equal(evaluation_rows(LABELS, groups, 0, seed=0), LABELS.val)


def test_sources_of_pseudo_labels() -> None:
    mined, true = np.array([0, 1, 1]), np.array([1, 0, 0])
    assert np.array_equal(pseudo_labels("cbcm", mined=mined, true=true), mined)
    assert np.array_equal(pseudo_labels("true", mined=mined, true=true), true)
    drawn = pseudo_labels("random", count=4000, seed=2)
    assert abs(drawn.mean() - 0.5) < 0.05
    assert np.array_equal(drawn, pseudo_labels("random", count=4000, seed=2))
    with pytest.raises(ConfigError):
        pseudo_labels("true", mined=mined)


@pytest.mark.parametrize("dual", [True, False])
def test_artifact_round_trip(tmp_path: Path, dual: bool) -> None:
    trained = train(replace(CONFIG, dual_branch=dual, max_steps=2))
    save_artifact(tmp_path, Artifact(trained, "embedded", ("a", "<b>"), ("0", "1")))
    loaded = load_artifact(tmp_path)
    assert_equal(loaded.trained, trained)
    assert loaded.trained.config == trained.config
    assert loaded.trained.parameters == trained.parameters
    assert (loaded.backbone, loaded.class_names) == ("embedded", ("a", "<b>"))
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(RunError, match="cannot be read"):
        load_artifact(tmp_path)


def test_predictions_do_not_depend_on_the_batch_size() -> None:
    classifier = train(replace(CONFIG, max_steps=2)).classifier()
    rows = LABELS.val[:50]
    several = predict_logits(classifier, backbone(), STORE, rows, image_size=28, batch_size=7)
    whole = predict_logits(classifier, backbone(), STORE, rows, image_size=28)
    assert several.shape == (50, 2) and np.allclose(several, whole, atol=1e-5)
    none = predict_logits(classifier, backbone(), STORE, rows[:0], image_size=28)
    assert none.shape == (0, 2)


def test_state_kept_is_the_best_by_the_rule() -> None:
    """A tiny model on a tiny set: the kept state scores what the history says, no less."""
    trained = train(replace(CONFIG, evaluate_every=2, lr=0.5))
    scores = [(h["worst_group"], h["group_mean"]) for h in trained.fitted.history]
    assert trained.fitted.best_score == max(scores)
    groups = selection_groups(LABELS, "val_pseudo_groups")[LABELS.val]
    logits = predict_logits(trained.classifier(), backbone(), STORE, LABELS.val, image_size=28)
    right = logits.argmax(1) == LABELS.y[LABELS.val]
    worst = min(right[groups == g].mean() for g in np.unique(groups))
    assert worst == pytest.approx(trained.fitted.best_score[0])
