"""How fast this machine is, measured in seconds: one training pass, one look, one concept step.

Images and labels are noise: what a step costs does not hang on what it sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from d2cp.backbone import Backbone, backbone_from_config, load_backbone
from d2cp.config import Config
from d2cp.config.debias import DebiasConfig
from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.strict import changed
from d2cp.core.device import process_state
from d2cp.core.progress import progress
from d2cp.core.rng import numpy_generator
from d2cp.data.pixels import centre_view
from d2cp.data.store import ImageStore
from d2cp.debias.labels import Labels
from d2cp.debias.train import train_d2cp, train_on_features
from d2cp.disentangle.concept_training import train_concepts
from d2cp.errors import BackboneError

PAPERS = "vit-base-patch16"  # the paper's backbone: without its weights, random ones cost the same
FEW, MANY = 4, 64  # images a step of stage 1: a few first, many where that was quick
WARM = 0.5  # seconds
LARGE = 40_000_000  # parameters from which on a few images are enough to measure


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Seconds on this machine."""

    a_pass: float  # an image through one branch, forth and back
    a_look: float  # an image through the frozen backbone
    concept_steps: float  # all training steps of stage 1
    note: str = ""


class Noise(ImageStore):
    """Images that need no file, the same for the same row."""

    def __init__(self, count: int, size: int) -> None:
        self._count, self.size, self.key, self.bad = count, size, "noise", {}

    @property
    def n(self) -> int:
        return self._count

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        shape = (len(indices), self.size, self.size, 3)
        return numpy_generator(0, "calibration").integers(256, size=shape, dtype=np.uint8)

    def subset(self, indices: NDArray[np.int64]) -> Noise:
        return Noise(len(indices), self.size)


def measure(config: Config) -> Pace:
    backbone, note = _backbone(config.backbone)
    few = 1 if backbone.parameter_count > LARGE else min(50, config.debias.batch_size)
    debias = replace(config.debias, batch_size=few, evaluate_every=0, epochs=1, epoch_size=0)
    store = Noise(2 * few, debias.resize)
    device = process_state().device

    def look() -> None:
        images = centre_view(store[np.arange(few)], debias.image_size).to(device)
        with torch.no_grad():
            backbone.to(device).features(backbone.normalise(images))

    look()
    return Pace(
        a_pass=_per_step(lambda steps: _train(backbone, store, debias, steps)) / (2 * few),
        a_look=_seconds(look) / few,
        concept_steps=_concepts(config.disentangle),
        note=note,
    )


def _backbone(name: str) -> tuple[Backbone, str]:
    try:
        return load_backbone(name), ""
    except BackboneError:
        if PAPERS not in name:
            raise
        from transformers import ViTConfig

        made = backbone_from_config(ViTConfig(image_size=224, patch_size=16))
        return made, f"{name} is not here: measured with random weights of the same shape"


def _train(backbone: Backbone, store: Noise, config: DebiasConfig, steps: int) -> None:
    bits = numpy_generator(0, "calibration/labels").integers(2, size=(4, store.n))
    labels = Labels(
        y=bits[0],
        classes=2,
        train=np.arange(store.n),
        val=np.arange(0),
        a=bits[1],
        y_xrm=bits[2],
        a_xrm=bits[3],
    )
    config = replace(config, max_steps=steps, epochs=steps)
    if config.tier == "features":
        features = torch.zeros(store.n, backbone.width)
        train_on_features(features, labels, config, seed=0, backbone_parameters=1)
    else:
        train_d2cp(backbone, store, labels, config, seed=0, quiet=True)


def _concepts(config: DisentangleConfig) -> float:
    """Each part's step by itself, times the steps and the batch that it has."""
    parts = {"": config.steps}
    if config.space == "vq":
        parts["vq."] = config.vq.steps
    if config.guide.concepts:
        parts["guide."] = config.guide.steps * config.guide.folds
    batches = {"": config.batch, "vq.": config.vq.batch, "guide.": config.guide.batch}
    least = {**_batches(parts, batches, FEW), **{f"{part}steps": 1 for part in parts}}

    def an_image(part: str, few: int) -> float:
        store = Noise(max(16, few), config.size)
        rows = np.arange(store.n)

        def train(steps: int) -> None:
            own = changed(config, {**least, f"{part}batch": few, f"{part}steps": steps})
            train_concepts(store, rows, rows % 2, own, 0, progress=partial(progress, quiet=True))

        return _per_step(train) / few

    total = 0.0
    for part, count in parts.items():
        few = min(FEW, batches[part])
        each = an_image(part, few)
        if each * few < WARM:  # a step of a few is soon done: what it costs besides images is not
            few = min(batches[part], MANY)
            each = an_image(part, few)
        total += count * batches[part] * each
    return total


def _batches(parts: Iterable[str], batches: Mapping[str, int], most: int) -> dict[str, int]:
    return {f"{part}batch": min(most, batches[part]) for part in parts}


def _per_step(train: Callable[[int], None]) -> float:
    """The difference of two short trainings: what they cost besides steps drops out. Where a step
    takes long, a first one that warms up would only take time."""
    once = _seconds(lambda: train(1))
    if once < WARM:
        once = _seconds(lambda: train(1))
    return max(1e-6, (_seconds(lambda: train(3)) - once) / 2)


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
