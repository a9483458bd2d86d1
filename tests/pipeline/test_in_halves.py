"""Both stages compute large batches in two halves: as the whole, the same bits on any cores."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor

from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.strict import changed
from d2cp.core import parts, threads
from d2cp.core.gradients import taken_now
from d2cp.data.pixels import Stored
from d2cp.debias.dual_branch import DualBranch
from d2cp.debias.logits import predict_logits
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.extract import extract
from d2cp.disentangle.latent_space import PixelSpace
from d2cp.pipeline.frozen_features import frozen_features
from debias_tiny import CONFIG, backbone, cmnist

ROWS = np.arange(11)


@contextmanager
def machine(cores: int, part: int) -> Iterator[None]:
    """So many cores, and parts of at least so many numbers."""
    with pytest.MonkeyPatch.context() as patch:
        for name in threads.CHOSEN_BY:
            patch.delenv(name, raising=False)
        patch.setattr(threads, "cores", lambda: cores)
        patch.setattr(threads, "GRAIN", 10**9)
        patch.setattr(parts, "PART", part)
        with threads.using(cores):
            yield


def concept_model() -> ConceptModel:
    plain = changed(
        DisentangleConfig(), {"guide.concepts": 0, "unet.sketch": 4, "unet.channels": (16, 32)}
    )
    return ConceptModel(plain, PixelSpace(plain.size, plain.unshuffle), None, 0)


def concept_step(store: Stored) -> list[Tensor]:
    """In double: gradients of hundreds beside gradients that are 0 but for rounding."""
    model = concept_model().train().double()
    draw = torch.Generator().manual_seed(1)
    images = torch.randn(11, 3, 28, 28, generator=draw).double()
    z, t = model.to_latents(images), torch.arange(11) * 90
    with parts.working(1000):
        predicted, scalars = model(images, images.new_zeros(11, 0), z, t)
        (predicted.square().mean() + scalars.square().mean()).backward()
    return [predicted, scalars, *(p.grad for p in model.parameters() if p.grad is not None)]


def dual_step(store: Stored) -> list[Tensor]:
    model = DualBranch.new(backbone(), 2, 2, CONFIG, seed=0)
    with parts.working(1000):
        y, a = model(backbone(), torch.from_numpy(store[ROWS]).permute(0, 3, 1, 2) / 255)
        (y.square().mean() + a.square().mean()).backward()
    return [y, a, *(p.grad for p in model.parameters())]


def apart_step(store: Stored) -> list[Tensor]:
    model = DualBranch.new(backbone(), 2, 2, CONFIG, seed=0)
    images = torch.from_numpy(store[ROWS]).permute(0, 3, 1, 2) / 255
    with parts.working(1000):
        found = [model.target(backbone(), images), model.spurious(backbone(), images)]
        taken = [taken_now(x.square().mean(), model.parameters()) for x in found]
        sum(taken).backward()
    return [*found, *(p.grad for p in model.parameters())]


def features(store: Stored) -> list[Tensor]:
    return [frozen_features(backbone(), store, ROWS, 28, batch=8, quiet=True)]


def logits(store: Stored) -> list[Tensor]:
    model = DualBranch.new(backbone(), 2, 2, CONFIG, seed=0).classifier()
    found = predict_logits(model, backbone(), store, ROWS, image_size=28, batch_size=8)
    return [torch.from_numpy(found)]


def concepts(store: Stored) -> list[Tensor]:
    found = extract(concept_model(), store, ROWS, batch=8)
    return [torch.from_numpy(found.scalars), torch.from_numpy(found.tokens)]


@pytest.mark.parametrize("work", [concept_step, dual_step, apart_step, features, logits, concepts])
def test_halves_are_the_whole_and_cores_change_no_bit(work: Callable[[Stored], list[Tensor]]):
    _, store = cmnist()
    with machine(2, part=10**9):
        whole = work(store)
    with machine(1, part=1):
        in_turn = work(store)
    with machine(2, part=1):
        together = work(store)
    assert len(whole) == len(in_turn) == len(together)
    for one, turn, both in zip(whole, in_turn, together, strict=True):
        assert torch.equal(turn, both)
        torch.testing.assert_close(one, both, atol=1e-5, rtol=1e-4)
