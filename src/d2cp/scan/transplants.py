"""Pictures of the transplant test: "with this put in, the answer changes"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from d2cp.core.arrays import Bytes
from d2cp.core.rng import numpy_generator
from d2cp.data.store import ImageStore
from d2cp.scan.bank import read
from d2cp.scan.batched import Doubles, Floats, Ints
from d2cp.scan.changes import CHANGES, WINDOWS
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.transplant import (
    lay,
    other_lenses,
    read_images,
    telling_windows,
    window_of,
)
from d2cp.scan.values import values_of

TRIES = 16
FRAME = (255, 60, 0)


@dataclass(frozen=True)
class Shown:
    """One try: the recipient, the donor (its window framed), the result, the values before and
    after, and the rows of recipient and donor."""

    recipient: Bytes
    donor: Bytes
    result: Bytes
    before: int
    after: int
    rows: tuple[int, int]


def try_transplants(
    found: Scan,
    finding: Finding,
    lens: str,
    store: ImageStore,
    rows: Ints,
    sure: Doubles,
    seed: int,
) -> list[Shown]:
    """Tries among `rows`, from sure donors of the value that carries the cue to pictures of any
    other value, by the transplant of `lens`. Nothing where the cue is not in the pixels."""
    if lens not in WINDOWS and lens not in CHANGES:
        return []
    value = finding.value[rows]
    side = int(finding.evidence.get("transplant", {}).get("towards", value.max(initial=0)))
    theirs, ours = rows[value == side], rows[value != side]
    if not len(theirs) or not len(ours):
        return []
    draw = numpy_generator(seed, "scan/pictures/transplants", finding.rank)
    best = theirs[np.argsort(-sure[value == side], kind="stable")[: max(1, len(theirs) // 4)]]
    recipients = draw.permutation(ours)[:TRIES]
    donors = draw.choice(best, len(recipients), replace=len(best) < len(recipients))
    taken, given = read(store, recipients), read(store, donors)
    extra = other_lenses(finding.reader, found.table_features, recipients)
    framed = as_bytes(given)
    if lens in WINDOWS:
        corners = telling_windows(found.bank, finding.reader, given, side)
        made = lay(lens, taken, given, corners)
        framed = np.stack(
            [frame(p, c, window_of(given.shape[-1])) for p, c in zip(framed, corners, strict=True)]
        )
    else:
        made = CHANGES[lens](taken, given)
    made = made.clamp(0, 1)
    with torch.no_grad():
        scores: Floats = read_images(found.bank, finding.reader, made, extra).numpy()
    after = values_of(scores, finding.threshold)
    before = finding.value[recipients]
    shown = as_bytes(taken), framed, as_bytes(made)
    parts = zip(*shown, before, after, recipients, donors, strict=True)
    return [Shown(r, d, m, int(b), int(a), (int(i), int(j))) for r, d, m, b, a, i, j in parts]


def frame(pixels: Bytes, corner: tuple[int, int], window: tuple[int, int]) -> Bytes:
    """A thin frame around a window."""
    (top, left), (height, width) = corner, window
    made = pixels.copy()
    bottom, right = top + height - 1, left + width - 1
    made[top : bottom + 1, [left, right]] = FRAME
    made[[top, bottom], left : right + 1] = FRAME
    return made


def as_bytes(images: Tensor) -> Bytes:
    """Images in [0, 1] as they are drawn."""
    made: Bytes = images.mul(255).round().byte().permute(0, 2, 3, 1).numpy()
    return made
