"""The mean of a template's best matches shows what recurs and not the scenes."""

import numpy as np
import torch
from test_templates import scenes

from d2cp.scan.bank import REPEATED, Bank
from d2cp.scan.finding import Reader
from d2cp.scan.lenses.templates import learn_templates
from d2cp.scan.recurring import LEAST, recurring, stretched


def labelled(n: int) -> torch.Tensor:
    """Scenes with one and the same cross in changing places, away from the edges."""
    fine, draw = scenes(n), np.random.default_rng(2)
    cross = torch.zeros(13, 13)
    cross[5:8] = cross[:, 5:8] = 1
    for picture in fine:
        y, x = draw.integers(12, 34, 2)
        picture[y : y + 13, x : x + 13] += 0.3 * cross
    return fine


def reader(weight: np.ndarray, largest: np.ndarray) -> Reader:
    return Reader(
        weight={REPEATED: weight[:, None].astype(np.float32)},
        intercept=np.zeros(1, np.float32),
        centre={REPEATED: largest.mean(0)},
        scale={REPEATED: largest.std(0) + 1e-3},
    )


def test_the_mean_keeps_what_recurs() -> None:
    plain, marked = scenes(80), labelled(80)
    templates = learn_templates(torch.cat([plain, marked]), 10, 0, tried=400)
    without, there = (templates.largest(x).numpy() for x in (plain, marked))
    apart = there.mean(0) - without.mean(0)
    weight = np.where(np.arange(10) == apart.argmax(), 1.0, 0.0)
    both = np.concatenate([without, there])
    images = marked[:40, None].expand(-1, 3, -1, -1).clamp(0, 1)
    found = recurring(Bank((), templates), reader(weight, both), images, 1)
    assert len(found) == 1  # the others push nowhere
    windows = found[0].windows.astype(float)[..., 0]
    assert LEAST <= len(windows) <= 20
    mean = windows.mean(0)
    scenery = np.mean([np.corrcoef(w.ravel(), mean.ravel())[0, 1] for w in windows])
    assert scenery > 0.5  # the windows are aligned: each looks like their mean
    assert found[0].mean.shape == (*mean.shape, 3)
    assert np.corrcoef(found[0].mean[..., 0].ravel(), mean.ravel())[0, 1] > 0.95
    assert not recurring(Bank((), templates), reader(-weight, both), images, 1)


def test_a_faint_picture_gets_the_whole_range() -> None:
    faint = 0.5 + 0.02 * torch.rand(3, 20, 20, generator=torch.Generator().manual_seed(0))
    made = stretched(faint)
    assert float(made.min()) == 0 and float(made.max()) > 0.9
    assert float(stretched(torch.full((3, 4, 4), 0.3)).abs().max()) < 1e-3
