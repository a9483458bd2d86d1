"""A finding's cue exchanged: the same picture as a donor of another value would show it.

What the transplant test does to a few images as a question (`transplant`), this does to all that
train: each gets the cue of a sure donor of another value and nothing else of it. Where the cue is a
window, an image that carries it loses it instead: the donor's pixels are laid over it. Every image
also gets a control, which keeps its value: another window of a donor of its own value, or such a
donor's colour, sharpness, …; what the cutting itself leaves behind is then on all sides alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.core.arrays import Rows
from d2cp.core.rng import numpy_generator
from d2cp.data.store import ImageStore
from d2cp.scan.bank import read
from d2cp.scan.batched import Ints
from d2cp.scan.changes import CHANGES, WINDOWS
from d2cp.scan.evidence import certainty
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.model_transplant import scaled
from d2cp.scan.transplant import Corner, paste, random_windows, telling_windows, window_of

CARRIED = 0.75
"""Share of the scan's transplants that have to be read as the donor's value. Surroundings, say, are
not all around the middle: an image with another's is told to be what it only half is."""
TRIED = 12
"""Windows tried for a control, of which the one that hides least of the cue is taken."""


@dataclass(frozen=True)
class Exchange:
    """Images, and for each a sure donor of another value and a friend of its own."""

    recipients: Rows
    donors: Rows
    friends: Rows
    given: Ints
    """The value that comes from the donor."""


def why_not(finding: Finding) -> str:
    """What stands against exchanging this finding's cue; nothing where it can be done."""
    if finding.lens not in WINDOWS and finding.lens not in CHANGES:
        return "its cue is not in the picture"
    tested = finding.evidence.get("transplant", {})
    if not tested.get("pairs"):
        return "its transplants were not tested"
    if tested["flips"] < CARRIED:
        return (
            f"a donor's cue carries its value to {100 * tested['flips']:.0f}% of images "
            f"({100 * CARRIED:.0f}% wanted): more goes with the finding than can be cut out"
        )
    if finding.lens in WINDOWS and finding.values > 2:
        return "a window can be exchanged between two values only"
    return ""


def pairs(finding: Finding, value: Ints, rows: Rows, donors: Rows, seed: int) -> Exchange | None:
    """For each of `rows` a donor and a friend among the surer half of `donors` with their values;
    None where `donors` show fewer than two values. `value` is of all rows of the table."""
    sure = {}
    for v in np.unique(value[donors]):
        own = donors[value[donors] == v]
        order = np.argsort(-certainty(finding.scores[own], finding.threshold), kind="stable")
        sure[int(v)] = own[order[: max(1, len(own) // 2)]]
    if len(sure) < 2:
        return None
    draw = numpy_generator(seed, "scan/exchange", finding.rank)
    given = [int(draw.choice([v for v in sure if v != value[row]])) for row in rows]
    theirs = [int(draw.choice(sure[v])) for v in given]
    friends = [_friend(sure.get(int(value[row]), rows[:0]), int(row), draw) for row in rows]
    return Exchange(rows, np.array(theirs), np.array(friends), np.array(given, dtype=np.int64))


def _friend(pool: Rows, row: int, draw: np.random.Generator) -> int:
    """Another image of the pool; the image itself where there is none."""
    others = pool[pool != row]
    return int(draw.choice(others)) if len(others) else row


def exchanged(
    found: Scan, finding: Finding, which: Exchange, seen: ImageStore, part: slice, seed: int
) -> tuple[Tensor, Tensor]:
    """Images of `part` with the donors' cue, and their controls, in the pictures of `seen`."""
    own = read(seen, which.recipients[part])
    theirs, friends = read(seen, which.donors[part]), read(seen, which.friends[part])
    if finding.lens in CHANGES:
        change = CHANGES[finding.lens]
        return change(own, theirs).clamp(0, 1), change(own, friends).clamp(0, 1)
    side = int(finding.evidence["transplant"]["towards"])  # the value whose images carry it
    carries = torch.from_numpy(which.given[part] != side)
    carriers = torch.where(carries[:, None, None, None], own, theirs)
    size = (found.size, found.size)
    small = F.interpolate(carriers, size, mode="bilinear", antialias=True).clamp(0, 1)
    cue = scaled(telling_windows(found.bank, finding.reader, small, side), small, own)
    control = [
        _elsewhere(corner, there, own.shape[-1], seed, int(row))
        for corner, there, row in zip(cue, carries, which.recipients[part], strict=True)
    ]
    return paste(own, theirs, cue), paste(own, friends, control)


def _elsewhere(cue: Corner, there: Tensor, side: int, seed: int, row: int) -> Corner:
    """A window anywhere; where the cue is in the picture, one that leaves it to be seen."""
    tried = random_windows(TRIED, side, numpy_generator(seed, "scan/exchange/control", row))
    if not there:
        return tried[0]
    height, width = window_of(side)

    def hidden(corner: Corner) -> int:
        down, along = abs(corner[0] - cue[0]), abs(corner[1] - cue[1])
        return max(0, height - down) * max(0, width - along)

    return min(tried, key=hidden)
