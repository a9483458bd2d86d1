"""Faithfulness on the coloured digits: what a method singles out is the minority, or the colour.

XRM and JTT are shown the digits' own pixels, pooled to 7 x 7: there colour is the easy cue and
shape the hard one, whatever a backbone makes of them.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from d2cp.backbone import load_backbone
from d2cp.compare.footing import Footing
from d2cp.compare.registry import methods
from d2cp.compare.tiers import FeatureSpace, PromptSpace
from d2cp.compare.train_classifier import predicted, train_classifier
from d2cp.config.debias import DebiasConfig
from d2cp.config.environments import EnvironmentsConfig
from d2cp.data import load_table, open_images
from d2cp.methods.masktune import image_masks
from d2cp.methods.xrm import environment_bits

SETTINGS = DebiasConfig(
    image_size=28,
    resize=28,
    augment=False,
    flip=False,
    batch_size=100,
    selection="val_worst_class",
)


@pytest.fixture(scope="module")
def table():
    sizes = {"train": 4000, "val": 2000, "test": 1, "test_balanced": 1}
    return load_table("cmnist").subsample(sizes)


@pytest.fixture(scope="module")
def pixels(table) -> Footing:
    images = torch.from_numpy(open_images(table, 28)[np.arange(len(table))]).permute(0, 3, 1, 2)
    pooled = torch.nn.functional.avg_pool2d(images.float() / 255, 4).flatten(1)
    return Footing(
        table=table,
        space=FeatureSpace(pooled, SETTINGS, train=table.rows("train")),
        config=SETTINGS,
        seed=0,
        budget=4000,
        environments=EnvironmentsConfig(steps=1000, lr_exponents=(-3.0, -1.0)),
    )


def minority(footing: Footing) -> np.ndarray:
    """Training images whose colour is not their class's usual one: green for 0, red for 1."""
    table, train = footing.table, footing.table.rows("train")
    return table.a[train] == table.y[train]


def shares(what: str, found: np.ndarray, rare: np.ndarray, capsys) -> tuple[float, float]:
    """The share found among the minority and among the rest, printed."""
    among, rest = float(found[rare].mean()), float(found[~rare].mean())
    with capsys.disabled():
        print(f"\n{what}: {100 * among:.0f}% of the minority, {100 * rest:.2f}% of the rest")
    return among, rest


def test_xrm_recovers_the_minority(pixels, capsys):
    bits = environment_bits(pixels.task(methods()["xrm"].spec)).astype(bool)
    among, rest = shares("XRM sets e = 1 for", bits, minority(pixels), capsys)
    assert among > 0.9 and rest < 0.05


def test_jtt_s_error_set_is_enriched_in_the_minority(pixels, capsys):
    task = pixels.task(methods()["jtt"].spec)
    model = train_classifier(task, stage="identify", passes=2000, select=False)
    wrong = predicted(task, model) != task.y_train
    among, rest = shares("JTT's error set holds", wrong, minority(pixels), capsys)
    assert among > 0.9 and rest < 0.05


def mean_cosine(features: torch.Tensor) -> float:
    z = torch.nn.functional.normalize(features, dim=1)
    n = len(z)
    return float(((z @ z.T).sum() - n) / (n * (n - 1)))


def test_cnc_s_features_do_not_collapse_in_its_first_steps(table, capsys):
    """Eight steps at the default rate: the mean cosine was .98 after them."""
    backbone, store = load_backbone("embedded"), open_images(table, 28)
    space = PromptSpace(backbone, store, torch.zeros(len(table), 1), SETTINGS, seed=0)
    footing = Footing(table=table, space=space, config=SETTINGS, seed=0, budget=1000)
    spec = methods()["cnc"].spec
    task = footing.task(spec)
    task.select = None  # the last state, not a lucky one
    rows = task.train[:100]
    before = mean_cosine(space.over(task.classifier().features, rows))
    model = methods()["cnc"].fit(task, spec.values()).model
    after = mean_cosine(space.over(model.features, rows))
    with capsys.disabled():
        print(f"\nCNC: mean cosine {before:.2f} at the start, {after:.2f} after 8 steps")
    assert before < 0.5 and after < 0.7


def test_masktune_masks_the_pixels_that_bear_the_colour(table, capsys):
    backbone, store = load_backbone("embedded"), open_images(table, 28)
    space = PromptSpace(backbone, store, torch.zeros(len(table), 1), SETTINGS, seed=0)
    footing = Footing(table=table, space=space, config=SETTINGS, seed=0, budget=900)
    task = footing.task(methods()["masktune"].spec)
    model = train_classifier(task, stage="erm", passes=900, select=False)
    rows = task.train[:200]
    masks = image_masks(space, model, rows)
    inked = store[rows].max(axis=3) > 40
    hit, base = inked[masks].mean(), inked.mean()
    with capsys.disabled():
        print(f"\nMaskTune: {100 * hit:.0f}% of masked pixels bear ink, {100 * base:.0f}% of all")
    assert masks.any(axis=(1, 2)).mean() > 0.5
    assert hit > 1.2 * base
