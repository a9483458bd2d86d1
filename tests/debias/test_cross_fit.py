"""Answers by models that were not trained on the image, and the search that they judge."""

from dataclasses import replace

import numpy as np
import torch

from d2cp.core.files import write_bytes
from d2cp.debias.cross_fit import ENOUGH, Fold, few_against, fold_numbers, folds_of, held_out
from d2cp.debias.evidence import evidence, load_evidence, save_evidence, search_held_out
from d2cp.debias.labels import Labels, sides
from d2cp.debias.settings_search import PLAIN, draw_settings
from d2cp.debias.train import plain, train_on_features
from d2cp.errors import RunError
from debias_tiny import CONFIG

SETTINGS = replace(CONFIG, tier="features", adapter_hidden=4, lr=0.05, batch_size=16, epochs=3)
N = 120


def labels(val: int = 40) -> Labels:
    """Class and value agree on nine of ten images."""
    y = np.tile([0, 1], N // 2)
    a = np.where(np.arange(N) % 20 < 2, 1 - y, y)
    rows = np.arange(N)
    return Labels(y=y, classes=2, train=rows[val:], val=rows[:val], a=a, values=2)


def features(seed: int = 0) -> torch.Tensor:
    return torch.randn(N, 8, generator=torch.Generator().manual_seed(seed))


def test_sides_are_two_groups_a_class_however_many_values_there_are() -> None:
    y, a = np.array([0, 0, 0, 1, 1, 1]), np.array([2, 2, 0, 1, 1, 2])
    three = Labels(y=y, classes=2, train=np.arange(6), val=np.arange(0), a=a, values=3)
    assert sides(three).tolist() == [0, 0, 1, 2, 2, 3]


def test_every_group_is_spread_over_the_folds() -> None:
    groups = np.repeat([0, 1], [50, 10])
    numbers = fold_numbers(groups, 5, seed=3)
    for g, size in ((0, 10), (1, 2)):
        assert np.bincount(numbers[groups == g], minlength=5).tolist() == [size] * 5


def test_training_images_answer_only_where_few_validation_images_go_against() -> None:
    few = labels()
    assert few_against(few)
    folds = folds_of(few, 4, seed=0)
    assert len(folds) == 5 and np.array_equal(folds[0].held, few.val)
    held = np.concatenate([fold.held for fold in folds])
    assert np.array_equal(np.sort(held), np.arange(N))
    assert all(not set(fold.train) & set(fold.held) for fold in folds)
    assert len(folds_of(few, 0, seed=0)) == 1, "not asked for"
    a = np.tile([0, 0, 1, 1], N // 4)
    many = replace(few, a=a, train=few.val, val=few.train)
    assert not few_against(replace(many, val=np.repeat(many.val, ENOUGH)))


def test_an_image_is_answered_by_a_model_without_it() -> None:
    """The features of a held-out image may change at will: no other answer does."""
    given, config = labels(), plain(SETTINGS)
    fold = [Fold(given.train[5:], given.train[:5])]
    changed = features()
    changed[given.train[:5]] = 100.0
    plainly = held_out(features(), given, fold, [config], seed=0)
    assert plainly.answers.shape == (1, len(plainly.steps), 5)
    other = [Fold(given.train[5:], given.val)]
    before, after = (held_out(x, given, other, [config], seed=0) for x in (features(), changed))
    assert np.array_equal(before.answers, after.answers)


def test_what_is_chosen_is_trained_for_as_many_steps_as_it_was_best_at() -> None:
    given, folds = labels(), [Fold(labels().train, labels().val)]
    settings = draw_settings(plain(SETTINGS), 2, PLAIN, seed=0)
    counted: list[int] = []
    found, config, draws = search_held_out(
        features(), given, folds, settings, PLAIN, seed=0, step=lambda: counted.append(1)
    )
    assert len(draws) == len(counted) == 3
    drawn = next(k for k, one in enumerate(settings) if one.lr == config.lr)
    assert draws[drawn].score == max(draw.score for draw in draws)
    trained = train_on_features(features(), given, config, seed=0, backbone_parameters=1)
    assert trained.fitted.best_step == config.max_steps == trained.fitted.steps
    state = int(np.flatnonzero(found.steps == config.max_steps)[0])
    answers = trained.classifier()(features()[torch.from_numpy(given.val)]).argmax(1).numpy()
    assert np.array_equal(answers, found.answers[drawn, state])


def test_evidence_is_of_both_searches_on_the_same_rows(tmp_path) -> None:
    given, folds = labels(), [Fold(labels().train, labels().val)]
    found = held_out(features(), given, folds, [plain(SETTINGS)], seed=0)
    made = evidence(found, found, given)
    save_evidence(tmp_path, made)
    read = load_evidence(tmp_path)
    assert read is not None and np.array_equal(read.rows, given.val)
    right = found.answers == given.y[given.val]
    assert set(np.unique(read.erm)) <= set(np.linspace(0, 1, 26)) and right.shape[0] == 1
    assert load_evidence(tmp_path / "elsewhere") is None
    write_bytes(tmp_path / "evidence.safetensors", b"cut")
    try:
        load_evidence(tmp_path)
    except RunError as error:
        assert "run again" in str(error)
    else:
        raise AssertionError("a damaged file was read")
