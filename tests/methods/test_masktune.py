"""MaskTune's masked epoch goes on where ERM ended."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from d2cp.backbone import load_backbone
from d2cp.compare.footing import Footing
from d2cp.compare.registry import methods
from d2cp.compare.tiers import PromptSpace
from d2cp.data import load_table, open_images


def test_masked_epoch_keeps_the_rate_that_erm_ended_with(make_config, monkeypatch):
    table = load_table("cmnist").subsample({"train": 60, "val": 24, "test": 1, "test_balanced": 1})
    settings = make_config(
        image_size=28,
        resize=28,
        batch_size=20,
        lr=0.1,
        epochs=4,
        lr_schedule="step",
        lr_every=2,
        lr_gamma=0.1,
        selection="val_worst_class",
    )
    space = PromptSpace(
        load_backbone("embedded"),
        open_images(table, 28),
        torch.zeros(len(table), 1),
        settings,
        seed=0,
    )
    task = Footing(table=table, space=space, config=settings, seed=0, budget=240).task(
        methods()["masktune"].spec
    )
    rates: list[float] = []
    real = torch.optim.SGD.step

    def recorded(self: torch.optim.SGD, *arguments: object) -> object:
        rates.append(self.param_groups[0]["lr"])
        return real(self, *arguments)

    monkeypatch.setattr(torch.optim.SGD, "step", recorded)
    methods()["masktune"].fit(task, {})
    erm, masked = np.array(rates[:9]), np.array(rates[9:])
    assert len(masked) == 3  # one epoch of 60 images
    assert erm[0] == pytest.approx(0.1) and erm[-1] == pytest.approx(0.001)
    assert masked == pytest.approx(np.full(3, erm[-1]))
