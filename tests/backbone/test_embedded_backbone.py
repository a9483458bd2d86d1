"""The packaged weights are whole, small, and hold what their card says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from d2cp.backbone import Backbone, load_backbone
from d2cp.backbone.linear_probe import apart, cls_features, linear_probe, paint, probe_mnist
from d2cp.backbone.load import EMBEDDED_FOLDER
from d2cp.cli.probe import lines
from d2cp.data.mnist import Mnist, load_mnist

N = 1000


@pytest.fixture(scope="module")
def backbone() -> Backbone:
    return load_backbone("embedded")


@pytest.fixture(scope="module")
def mnist() -> Mnist:
    """The whole training split and the first thousand test digits."""
    whole = load_mnist()
    return replace(whole, test_images=whole.test_images[:N], test_labels=whole.test_labels[:N])


def test_shape_and_size(backbone: Backbone) -> None:
    assert (backbone.name, backbone.family) == ("embedded", "vit")
    assert (backbone.width, backbone.depth, backbone.heads) == (128, 6, 4)
    assert (backbone.patch_size, backbone.image_size) == (7, 28)
    assert (backbone.mean, backbone.std) == ((0.5,) * 3, (0.5,) * 3)
    assert (EMBEDDED_FOLDER / "model.safetensors").stat().st_size < 12_000_000


def test_auto_model_loads_the_folder(backbone: Backbone) -> None:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(EMBEDDED_FOLDER, add_pooling_layer=False).eval()
    pixels = torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(0))
    expected = model(pixel_values=pixels).last_hidden_state
    torch.testing.assert_close(backbone(pixels), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("phase", ["shape", "colour"])
def test_log_belongs_to_a_finished_training(phase: str) -> None:
    lines = (EMBEDDED_FOLDER / f"training-log-{phase}.csv").read_text().splitlines()
    last = dict(zip(lines[0].split(","), map(float, lines[-1].split(",")), strict=True))
    assert last["lr"] < 1e-6
    assert last["glyph_accuracy"] > 0.4


def test_probes_on_a_small_sample(backbone: Backbone, mnist: Mnist) -> None:
    probes = probe_mnist(backbone, mnist, train=1500)
    # The card gives the figures for 10,000 training digits (98.0%, 100%, 100.0%).
    assert probes.digit > 0.95
    assert probes.red_green > 0.99
    assert probes.ten_colours > 0.97
    assert (probes.train, probes.test) == (1500, 1000)
    # The second phase of its training made colour the more prominent of the two.
    assert probes.colour_apart > probes.shape_apart > 1


def test_apart_is_the_distance_of_means() -> None:
    features = np.array([[0, 0], [0, 2], [3, 5], [3, 5]], dtype=np.float32)
    assert apart(features, np.array([False, False, True, True])) == pytest.approx(5.0)


def test_probe_is_at_chance_on_shuffled_labels(backbone: Backbone, mnist: Mnist) -> None:
    white = np.full((1000, 3), 255, dtype=np.uint8)
    features = cls_features(backbone, paint(mnist.test_images, white))
    labels = np.random.default_rng(0).permutation(mnist.test_labels)
    accuracy = linear_probe(features[:500], labels[:500], features[500:], labels[500:])
    assert accuracy < 0.2


def test_paint_multiplies_grey_and_colour() -> None:
    grey = np.array([[[0, 255, 51]]], dtype=np.uint8)
    image = paint(grey, np.array([[255, 0, 100]], dtype=np.uint8))
    assert image.tolist() == [[[[0, 0, 0], [255, 0, 100], [51, 0, 20]]]]


def test_figures_as_text() -> None:
    figures = {
        "backbone": "embedded",
        "family": "vit",
        "image_size": 28,
        "digit": 0.961,
        "red_green": 1.0,
        "ten_colours": 0.998,
        "colour_apart": 30.04,
        "shape_apart": 6.5,
        "train": 10_000,
        "test": 10_000,
        "parameters": 1_212_032,
        "megabytes": 4.848,
        "seconds": 61.0,
        "machine": "2 CPU cores, no accelerator",
    }
    text = lines(figures)
    assert "ten digits    96.10%" in text
    assert "apart         30.0 red and green, 6.5 0-4 and 5-9 (mean features)" in text
    assert "parameters    1,212,032 (4.8 MB as float32)" in text
