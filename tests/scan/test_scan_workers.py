"""The scan's work shared between cores."""

import numpy as np
import pytest
import torch

from d2cp.config.scan import ScanConfig
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.scan import workers
from d2cp.scan.eyes import StoreEyes
from d2cp.scan.scanner import Scaling, scan


class Pixels(ImageStore):
    def __init__(self, pixels):
        self.pixels, self.size, self.key, self.bad = pixels, pixels.shape[1], "drawn", {}

    @property
    def n(self):
        return len(self.pixels)

    def __getitem__(self, indices):
        return self.pixels[indices]

    def subset(self, indices):
        return Pixels(self.pixels[indices])


def found_with(cores, monkeypatch):
    monkeypatch.setattr(workers, "allowed", lambda: cores)
    draw = np.random.default_rng(0)
    y = np.arange(150) % 2
    cue = np.where(draw.random(150) < 0.85, y, 1 - y)
    pixels = draw.integers(40, 200, (150, 48, 48, 3)).astype(np.uint8)
    pixels[cue == 1, 10:20, 10:25] = 220
    table = Table(
        name="drawn",
        ids=np.arange(150).astype(str),
        y=y,
        split=np.repeat([0, 1], [110, 40]).astype(np.int8),
        class_names=("a", "b"),
        source=pixels,  # not asked for files
    )
    with workers.sharing():
        eyes = StoreEyes(Pixels(pixels), table.rows("train"), 20, 0)
        return scan(table, eyes, table.rows("train"), ScanConfig(permutations=39, alpha=0.05))


def test_the_bits_are_the_same_on_one_core_and_on_three(monkeypatch):
    one, three = (found_with(cores, monkeypatch) for cores in (1, 3))
    assert len(one.findings) == len(three.findings) and one.findings[0].outcome == "found"
    for a, b in zip(one.findings, three.findings, strict=True):
        assert np.array_equal(a.scores, b.scores) and a.to_dict() == b.to_dict()


def test_jobs_keep_their_order_use_one_thread_and_pass_their_errors_on(monkeypatch):
    monkeypatch.setattr(workers, "allowed", lambda: 2)
    before = torch.get_num_threads()
    with workers.sharing():
        assert workers.each(lambda n: n * n, range(9)) == [n * n for n in range(9)]
        assert workers.each(lambda _: torch.get_num_threads(), range(4)) == [1] * 4
        with pytest.raises(ZeroDivisionError):
            workers.each(lambda n: 1 / n, (1, 0))
    assert torch.get_num_threads() == before
    assert workers.each(lambda n: -n, (1, 2)) == [-1, -2]  # outside: one after the other


def test_scaling_by_batches_is_the_mean_and_spread_of_all_rows():
    x = np.random.default_rng(0).normal(3, 2, (2500, 4)).astype(np.float32)
    scaling = Scaling.of({"lens": x})
    assert np.allclose(scaling.centre["lens"], x.mean(0), atol=1e-5)
    assert np.allclose(scaling.scale["lens"], x.std(0), atol=1e-5)
    inside = {"lens": x.copy()}
    scaling.apply(inside)
    assert np.array_equal(inside["lens"], scaling({"lens": x})["lens"])
