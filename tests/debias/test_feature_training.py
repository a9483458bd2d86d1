"""Stage 2 on frozen features: the same objective and artifact, a search of its settings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from d2cp.config.debias import DebiasConfig
from d2cp.data.pixels import centre_view
from d2cp.debias.logits import image_logits, predict_logits
from d2cp.debias.loop import Fitted
from d2cp.debias.parameter_count import ParameterCount
from d2cp.debias.settings_search import ALL, PLAIN, Draw, draw_settings, search
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.train import Trained, plain, train_on_features
from d2cp.debias.trained_files import Artifact, load_artifact, save_artifact
from d2cp.debias.training_tiers import spurious_solution
from d2cp.pipeline.frozen_features import frozen_features
from debias_tiny import CONFIG, backbone, cmnist, labels_of

TABLE, STORE = cmnist()
LABELS = labels_of(TABLE)
FEATURES = frozen_features(backbone(), STORE, np.arange(len(TABLE)), 28, quiet=True)
SETTINGS = replace(CONFIG, tier="features", adapter_hidden=6, lr=0.02)

JOINT = replace(SETTINGS, spurious_fit="joint")


def train(config=SETTINGS) -> Trained:
    return train_on_features(FEATURES, LABELS, config, seed=1, backbone_parameters=1000)


def test_the_same_seed_gives_the_same_bits() -> None:
    one, other = train(), train()
    for name, value in one.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name])
    assert one.fitted == other.fitted


def test_both_branches_learn_and_plain_training_has_one() -> None:
    trained, erm = train(JOINT), train(plain(SETTINGS))
    assert all(parameter.abs().sum() > 0 for parameter in trained.model.parameters())
    assert trained.shortcut() is not None and erm.shortcut() is None
    width, hidden = FEATURES.shape[1], SETTINGS.adapter_hidden
    branch = 2 * width * hidden + width + hidden + 2 * width + 2
    assert erm.parameters == ParameterCount(branch=branch, trained=branch, backbone=1000)
    assert trained.parameters == ParameterCount(branch=branch, trained=2 * branch, backbone=1000)


def test_a_solved_spurious_branch_reads_and_is_not_trained() -> None:
    """Digits' colour is read from the features; the head counts, the idle adapter does not."""
    trained = train()
    assert isinstance(trained.model, SolvedDualAdapter) and trained.model.directions == 1
    answers = trained.shortcut()(FEATURES[torch.from_numpy(LABELS.val)]).argmax(1).numpy()
    assert (answers == LABELS.a[LABELS.val]).mean() > 0.9
    width = FEATURES.shape[1]
    assert trained.parameters.trained == trained.parameters.branch + 2 * width + 2
    again = train_on_features(
        FEATURES,
        LABELS,
        SETTINGS,
        seed=1,
        backbone_parameters=1000,
        solution=spurious_solution(FEATURES, LABELS, SETTINGS, seed=1),
    )
    for name, value in trained.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])


@pytest.mark.parametrize(
    "config",
    [SETTINGS, JOINT, replace(SETTINGS, dual_branch=False)],
    ids=["solved", "joint", "one"],
)
def test_artifact_round_trip_and_logits_from_images(tmp_path: Path, config: DebiasConfig) -> None:
    """What was trained on features answers from images, through the backbone, the same."""
    trained = train(config)
    draws = (Draw({"lr": 0.1}, (0.5, 0.75)), Draw({"lr": 0.2}, None))
    names = ("a", "b")
    save_artifact(tmp_path, Artifact(trained, "embedded", names, names, None, draws))
    loaded = load_artifact(tmp_path)
    assert loaded.draws == draws and loaded.trained.config == trained.config
    rows = LABELS.val[:20]
    with torch.no_grad():
        expected = trained.classifier()(FEATURES[torch.from_numpy(rows)]).numpy()
    classifier = loaded.trained.classifier()
    found = predict_logits(classifier, backbone(), STORE, rows, image_size=28, batch_size=7)
    assert np.abs(expected).max() > 0.05
    np.testing.assert_allclose(found, expected, atol=1e-4)
    images = centre_view(STORE[rows], 28)
    with torch.no_grad():
        one = image_logits(classifier, backbone(), images)
    np.testing.assert_allclose(one.numpy(), expected, atol=1e-4)


def test_draws_hold_the_given_settings_first_and_control_and_method_meet_the_same_rates() -> None:
    method = draw_settings(SETTINGS, 5, ALL, seed=3)
    control = draw_settings(plain(SETTINGS), 5, PLAIN, seed=3)
    assert method[0] == SETTINGS and control[0] == plain(SETTINGS)
    assert [c.lr for c in method] == [c.lr for c in control]
    assert [c.weight_decay for c in method] == [c.weight_decay for c in control]
    assert all(c.alpha == SETTINGS.alpha and c.eta == SETTINGS.eta for c in control)
    assert len({(c.lr, c.weight_decay, c.alpha, c.eta) for c in method}) == 6
    assert method == draw_settings(SETTINGS, 5, ALL, seed=3)
    assert all(0.8 <= c.alpha <= 2 and 1e-3 <= c.eta <= 1e-1 for c in method[1:])


def test_search_keeps_what_validation_likes_best() -> None:
    scores = [(0.5, 0.9), (0.7, 0.8), (0.7, 0.8), (0.6, 0.99)]
    configs = draw_settings(SETTINGS, 3, ALL, seed=0)
    model = train(replace(SETTINGS, max_steps=1))

    def train_one(config):
        score = scores[configs.index(config)]
        return replace(model, config=config, fitted=Fitted(1, 1, score))

    best, draws = search(configs, ALL, train_one)
    assert best.config == configs[1]
    assert [draw.score for draw in draws] == scores
    assert draws[1].settings == {name: getattr(configs[1], name) for name in ALL}
