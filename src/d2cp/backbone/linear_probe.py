"""Linear probes: what can be read from a frozen backbone's CLS feature with a linear classifier."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from d2cp.backbone.adapter import Backbone
from d2cp.core.arrays import Bytes as Images
from d2cp.core.arrays import Ints as Labels
from d2cp.core.progress import Bar, progress
from d2cp.core.rng import numpy_generator, permutation
from d2cp.data.coloured import cmnist10
from d2cp.data.mnist import Mnist
from d2cp.data.pixels import centre_view
from d2cp.data.source import ColouredSource

BATCH = 250


@dataclass(frozen=True, kw_only=True)
class Probes:
    """Test accuracies of linear probes on MNIST digits."""

    digit: float  # ten digits, white on black
    red_green: float  # colour of red or green digits
    ten_colours: float  # colour of digits in ten colours
    colour_apart: float  # distance of the mean features of red and of green digits
    shape_apart: float  # the same of the digits 0-4 and 5-9
    train: int
    test: int


def cls_features(
    backbone: Backbone, images: Images, batch: int = BATCH, bar: Bar | None = None
) -> NDArray[np.float32]:
    """CLS features [N, D] of uint8 images [N, H, W, 3]."""
    parts = []
    with torch.inference_mode():
        for start in range(0, len(images), batch):
            some = centre_view(images[start : start + batch], backbone.image_size)
            parts.append(backbone.features(backbone.normalise(some)))
            if bar is not None:
                bar.step(images=len(some))
    features: NDArray[np.float32] = torch.cat(parts).numpy()
    return features


def linear_probe(
    train: NDArray[np.float32],
    train_labels: Labels,
    test: NDArray[np.float32],
    test_labels: Labels,
) -> float:
    """Test accuracy of a logistic regression (standardised features, C = 1) on the features."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(train, train_labels)
    return float((model.predict(test) == test_labels).mean())


def apart(features: NDArray[np.float32], halves: NDArray[np.bool_]) -> float:
    """Distance between the mean features of two halves: how prominent what tells them apart is."""
    return float(np.linalg.norm(features[halves].mean(0) - features[~halves].mean(0)))


def paint(grey: Images, colours: NDArray[np.uint8]) -> Images:
    """Grey digits [N, H, W] drawn in one colour each [N, 3] on black: [N, H, W, 3]."""
    product = grey[..., None].astype(np.uint16) * colours[:, None, None, :]
    painted: Images = ((product + 127) // 255).astype(np.uint8)
    return painted


def fit_size(images: Images, side: int) -> Images:
    """Digits [N, 28, 28] enlarged to a backbone's side by nearest pixels; unchanged at 28."""
    rows = np.arange(side) * images.shape[1] // side
    return images[:, rows][:, :, rows]


def probe_mnist(
    backbone: Backbone, mnist: Mnist, train: int, seed: int = 0, *, quiet: bool = True
) -> Probes:
    """Probes trained on `train` digits of the training split, evaluated on the whole test split."""
    steps = 3 * sum(math.ceil(n / BATCH) for n in (train, len(mnist.test_images)))
    with progress(steps, "probing", quiet=quiet) as bar:
        return _probe_mnist(backbone, mnist, train, seed, bar)


def _probe_mnist(backbone: Backbone, mnist: Mnist, train: int, seed: int, bar: Bar) -> Probes:
    rows = np.sort(permutation(seed, "probe", 0, len(mnist.train_images))[:train])
    digits = (fit_size(mnist.train_images[rows], backbone.image_size), mnist.train_labels[rows])
    held = (fit_size(mnist.test_images, backbone.image_size), mnist.test_labels)
    source = cmnist10().source
    assert isinstance(source, ColouredSource)  # what the embedded sets are made of
    white = np.full((1, 3), 255, dtype=np.uint8)
    accuracies = [
        linear_probe(
            cls_features(backbone, paint(digits[0], np.repeat(white, len(rows), 0)), bar=bar),
            digits[1],
            cls_features(backbone, paint(held[0], np.repeat(white, len(held[0]), 0)), bar=bar),
            held[1],
        )
    ]
    for count in (2, len(source.palette)):
        painted, colours = [], []
        for part, (grey, _) in {"train": digits, "test": held}.items():
            generator = numpy_generator(seed, f"probe/{count}/{part}")
            colour = generator.integers(0, count, size=len(grey))
            colours.append(colour)
            painted.append(cls_features(backbone, paint(grey, source.palette[colour]), bar=bar))
        accuracies.append(linear_probe(painted[0], colours[0], painted[1], colours[1]))
        if count == 2:
            distances = apart(painted[0], colours[0] == 1), apart(painted[0], digits[1] > 4)
    return Probes(
        digit=accuracies[0],
        red_green=accuracies[1],
        ten_colours=accuracies[2],
        colour_apart=distances[0],
        shape_apart=distances[1],
        train=len(rows),
        test=len(held[0]),
    )
