from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from d2cp.errors import ConfigError, DataError, RunError
from d2cp.mine import MineConfig, apply, load_mined, mine, save_mined
from mine_synthetic import class_only_set, shortcut_set, tokens_of

QUICK = MineConfig(bootstrap=3, folds=3, l2_grid=(0.1, 0.01, 0.001))


def recall(pseudo, a):
    return [float(np.mean(pseudo[a == v] == v)) for v in np.unique(a)]


def test_the_shortcut_is_found_and_labelled():
    tokens, y, a = shortcut_set()
    mined = mine(tokens, y, QUICK, 0)
    assert mined.concepts == (2,)
    pseudo, score = apply(mined, tokens)
    assert min(recall(pseudo, a)) > 0.98, "ã = 1 pushes towards class 1"
    assert np.array_equal(pseudo, score > mined.threshold)
    assert mined.verdict.outcome == "found"
    assert mined.verdict.sentence.startswith("Concept 2 predicts the class of 9")


def test_the_rule_is_frozen_on_train():
    tokens, y, _ = shortcut_set()
    other, _, other_a = shortcut_set(200, agreement=0.5, seed=9)
    mined = mine(tokens, y, QUICK, 0)
    whole, _ = apply(mined, other)
    parts = np.concatenate([apply(mined, other[:50])[0], apply(mined, other[50:])[0]])
    assert np.array_equal(whole, parts), "an image's label does not depend on its neighbours"
    assert min(recall(whole, other_a)) > 0.98


@pytest.mark.parametrize("options", [
    {"threshold": "zero"}, {"threshold": "otsu"}, {"threshold": "gmm"}, {"score": "clusters"},
    {"top_m": 1}, {"flip_rounds": 0}, {"epochs": 10, "learning_rate": 0.5}, {"l2": 0.01},
    {"balanced": False},
])  # fmt: skip
def test_every_option_labels_the_easy_case(options):
    tokens, y, a = shortcut_set()
    mined = mine(tokens, y, dataclasses.replace(QUICK, **options), 0)
    assert 2 in mined.concepts
    assert min(recall(apply(mined, tokens)[0], a)) > 0.95


def test_the_paper_form_runs_and_differs():
    tokens, y, a = shortcut_set()
    config = dataclasses.replace(MineConfig.paper(), bootstrap=2)
    mined = mine(tokens, y, config, 0)
    assert mined.l2 == 0 and mined.top_m >= 2 and mined.config.threshold == "midpoint"
    assert not np.allclose(mined.prototypes.mean(axis=0), 0, atol=1e-3), "tokens stay uncentred"
    assert 2 in mined.concepts
    assert min(recall(apply(mined, tokens)[0], a)) > 0.6


def test_centring_ignores_a_constant_token():
    tokens, y, _ = shortcut_set()
    shifted = tokens.copy()
    shifted[:, 4] = 50.0
    assert mine(shifted, y, QUICK, 0).concepts == (2,)


def test_signed_scalars():
    tokens, y, a = shortcut_set()
    scalars = np.random.default_rng(0).normal(size=(len(y), 6))
    scalars[:, 2] += 4.0 * a
    config = dataclasses.replace(QUICK, score="signed_scalars")
    mined = mine(tokens, y, config, 0, scalars=scalars)
    assert min(recall(apply(mined, tokens, scalars)[0], a)) > 0.95
    with pytest.raises(DataError, match="scalars"):
        apply(mined, tokens)
    three, labels, _ = shortcut_set(classes=3)
    with pytest.raises(ConfigError, match="3 classes"):
        mine(three, labels, config, 0, scalars=scalars)


@pytest.mark.parametrize("classes", [3, 5])
def test_more_than_two_classes(classes):
    tokens, y, a = shortcut_set(900, classes=classes)
    mined = mine(tokens, y, QUICK, 0)
    assert 2 in mined.concepts
    assert mined.values == classes and mined.threshold is None
    assert min(recall(apply(mined, tokens)[0], a)) > 0.9, "value c belongs to class c"
    assert mined.verdict.outcome in ("found", "weak")


def test_more_values_than_classes():
    generator = np.random.default_rng(0)
    y = np.arange(900) % 2
    a = np.where(generator.random(900) < 0.9, 2 * y, 2 * (1 - y)) + generator.integers(2, size=900)
    scalars = generator.normal(size=(900, 5))
    scalars[:, 1] = np.array([-3.0, -1.0, 1.0, 3.0])[a] + 0.15 * scalars[:, 1]
    config = dataclasses.replace(QUICK, values=4, top_m=1)
    mined = mine(tokens_of(scalars), y, config, 0)
    pseudo, _ = apply(mined, tokens_of(scalars))
    assert mined.values == 4 and len(np.unique(pseudo)) == 4


def test_t_empty_raises_m_and_says_so():
    """Two cues, one for each class: no concept is at the top of both until M grows."""
    generator = np.random.default_rng(0)
    y = np.arange(600) % 2
    scalars = 0.2 * generator.normal(size=(600, 4))
    scalars[:, 0] += np.where((y == 1) & (generator.random(600) < 0.5), 5.0, 0.0)
    scalars[:, 1] += np.where((y == 0) & (generator.random(600) < 0.5), 5.0, 0.0)
    tokens = scalars[:, :, None]
    config = dataclasses.replace(QUICK, top_m=1, flip_rounds=0)
    mined = mine(tokens, y, config, 0)
    assert mined.top_m > 1 and mined.concepts
    assert any("M was raised to" in w for w in mined.warnings)


def test_m_beyond_k_takes_every_concept():
    tokens, y, _ = shortcut_set(concepts=3)
    mined = mine(tokens, y, dataclasses.replace(QUICK, top_m=50), 0)
    assert sorted(mined.concepts) == [0, 1, 2] and mined.top_m == 3


def test_excluded_concepts_are_never_mined():
    tokens, y, _ = shortcut_set()
    mined = mine(tokens, y, dataclasses.replace(QUICK, exclude=(2,)), 0)
    assert 2 not in mined.concepts and np.all(mined.weight[:, 2] == 0)
    assert all(2 not in row for row in mined.per_class)
    for wrong in ((99,), tuple(range(6))):
        with pytest.raises(ConfigError, match="exclude"):
            mine(tokens, y, dataclasses.replace(QUICK, exclude=wrong), 0)


def test_class_itself_is_not_called_a_shortcut():
    tokens, y = class_only_set()
    verdict = mine(tokens, y, QUICK, 0).verdict
    assert verdict.outcome == "none"
    assert "crowd at their boundary" in verdict.sentence


def test_labels_by_chance_have_no_shortcut():
    tokens, y, _ = shortcut_set(agreement=0.5)
    generator = np.random.default_rng(1)
    verdict = mine(tokens, generator.permutation(y), QUICK, 0).verdict
    assert verdict.outcome == "none" and "hardly predict" in " ".join(verdict.reasons)


def test_pseudo_label_equal_to_the_class_is_reported():
    tokens, y, _ = shortcut_set(agreement=1.0)
    verdict = mine(tokens, y, QUICK, 0).verdict
    assert verdict.outcome == "none" and verdict.evidence["empty_cells"] == 2
    assert "the class itself" in verdict.sentence


def test_constant_tokens_give_one_value_and_no_shortcut():
    y = np.arange(60) % 2
    verdict = mine(np.ones((60, 4, 3)), y, QUICK, 0).verdict
    assert verdict.outcome == "none"
    assert verdict.reasons[0] == "every image gets the same pseudo label"


def test_a_class_of_one_image():
    tokens, y, _ = shortcut_set(100)
    y = np.where(np.arange(100) == 7, 2, y)
    mined = mine(tokens, y, QUICK, 0)
    assert mined.classes == 3 and np.isfinite(mined.scores).all()


@pytest.mark.parametrize("y", [np.zeros(10, int), np.arange(9) % 2])
def test_unusable_labels_are_refused(y):
    with pytest.raises(DataError):
        mine(np.random.default_rng(0).normal(size=(10, 4, 2)), y, QUICK, 0)


def test_tokens_that_are_not_finite_are_refused():
    tokens, y, _ = shortcut_set(50)
    tokens[3, 1, 0] = np.nan
    with pytest.raises(DataError, match="not finite"):
        mine(tokens, y, QUICK, 0)


@pytest.mark.parametrize("classes", [2, 3])
def test_same_seed_same_finding_and_a_trip_to_disk(tmp_path, classes):
    tokens, y, _ = shortcut_set(300, classes=classes)
    mined = mine(tokens, y, QUICK, 5)
    again = mine(tokens, y, QUICK, 5)
    save_mined(mined, tmp_path)
    loaded = load_mined(tmp_path)
    for other in (again, loaded):
        assert other.verdict == mined.verdict and other.config == mined.config
        assert other.concepts == mined.concepts and other.per_class == mined.per_class
        for one, two in zip(apply(mined, tokens), apply(other, tokens), strict=True):
            assert np.array_equal(one, two)


def test_a_damaged_finding_is_refused(tmp_path):
    tokens, y, _ = shortcut_set(100)
    save_mined(mine(tokens, y, QUICK, 0), tmp_path)
    whole = (tmp_path / "mined.safetensors").read_bytes()
    (tmp_path / "mined.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunError, match="cannot be read"):
        load_mined(tmp_path)


@pytest.mark.parametrize("options", [
    {"rho": 0.0}, {"top_m": 0}, {"folds": 1}, {"folds": 0}, {"values": 1}, {"l2": -1.0},
    {"signal_share": 0.0}, {"bootstrap": 1}, {"epochs": 0}, {"l2_grid": ()},
    {"folds": 0, "l2": 0.1, "flip_rounds": 1},
])  # fmt: skip
def test_settings_out_of_range_are_refused(options):
    with pytest.raises(ConfigError):
        MineConfig(**options)
