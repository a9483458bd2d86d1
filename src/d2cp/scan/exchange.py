"""The cues of findings exchanged: the same picture as donors of other values would show it.

What the transplant test does to a few images as a question (`transplant`), this does to all that
train: each gets the cue of a sure donor of another value and nothing else of it. Where the cue is a
window, an image that carries it loses it instead: the donor's pixels are laid over it. Every image
also gets a control, which keeps its value: another window of a donor of its own value, or such a
donor's colour, sharpness, …; what the cutting itself leaves behind is then on all sides alike.

Where several findings make the groups an image goes over to any other of their cells, one finding
after the other; donors and friends show the image's own values of the findings beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.core.arrays import Bools, Rows
from d2cp.core.rng import numpy_generator
from d2cp.data.store import ImageStore
from d2cp.scan.bank import read
from d2cp.scan.batched import Ints
from d2cp.scan.changes import CHANGES, WINDOWS
from d2cp.scan.evidence import certainty
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.model_transplant import scaled
from d2cp.scan.transplant import Corner, lay, random_windows, telling_windows, window_of

CARRIED = 0.65
"""Share of the scan's transplants that have to be read as the donor's value. Surroundings, say, are
not all around the middle: an image with another's is told to be what it only half is."""
TRIED = 12
"""Windows tried for a control, of which the one that hides least of the cue is taken."""
ENOUGH = 8
"""Donors that show an image's own values of the other findings; of fewer all of the value serve."""
FIRST = ("texture", "layout", "border", *WINDOWS)
"""What replaces pixels comes first, the larger part before the smaller, then what recolours all."""


@dataclass(frozen=True)
class Exchange:
    """Images, their values of each finding `before` and `after` [n, findings], the number of the
    cell that these are, and for each finding a sure donor of the value after and a friend of the
    value before."""

    recipients: Rows
    given: Ints
    before: Ints
    after: Ints
    donors: Ints
    friends: Ints

    def part(self, which: slice | Rows) -> Exchange:
        return Exchange(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


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


def pairs(
    findings: Sequence[Finding],
    cells: Ints,
    cell: Ints,
    rows: Rows,
    donors: Rows,
    seed: int,
    fixed: Sequence[bool] = (),
) -> Exchange | None:
    """For each of `rows` another cell, drawn evenly, and for each finding a donor and a friend
    among the surer half of `donors` with their values. `cells` [C, findings] are the values behind
    each cell, `cell` has one of them for every row of the table; a finding that is `fixed` keeps
    its value. None where `donors` show one cell only, or there is no other to go to."""
    held = np.array(fixed or [False] * len(findings))
    own = cells[cell]
    draw = numpy_generator(seed, "scan/exchange", findings[0].rank)
    there = [int(c) for c in np.unique(cell[donors])]
    ways = {
        c: [d for d in there if d != c and np.array_equal(cells[d, held], cells[c, held])]
        for c in np.unique(cell[rows])
    }
    rows = rows[[bool(ways[c]) for c in cell[rows]]]
    if len(there) < 2 or not len(rows):
        return None
    given = np.array([int(draw.choice(ways[c])) for c in cell[rows]], dtype=np.int64)
    before, after = own[rows], cells[given]
    theirs, friends = np.empty_like(before), np.empty_like(before)
    for k, finding in enumerate(findings):
        pool = _Sure(finding, k, own, donors)
        theirs[:, k] = [
            draw.choice(pool.like(int(v), b)) for v, b in zip(after[:, k], before, strict=True)
        ]
        friends[:, k] = [
            _friend(pool.like(int(b[k]), b), int(row), draw)
            for row, b in zip(rows, before, strict=True)
        ]
    return Exchange(rows, given, before, after, theirs, friends)


class _Sure:
    """The surer half of the donors with each value of finding `k`, by what else they show."""

    def __init__(self, finding: Finding, k: int, values: Ints, donors: Rows) -> None:
        self._values, self._k = values, k
        self._sure: dict[int, Rows] = {}
        self._like: dict[tuple[int, ...], Rows] = {}
        for v in np.unique(values[donors, k]):
            own = donors[values[donors, k] == v]
            order = np.argsort(-certainty(finding.scores[own], finding.threshold), kind="stable")
            self._sure[int(v)] = own[order[: max(1, len(own) // 2)]]

    def like(self, value: int, image: Ints) -> Rows:
        """Those of this value that show the image's values of all other findings, where there are
        enough of them."""
        wanted = image.copy()
        wanted[self._k] = value
        key = tuple(int(v) for v in wanted)
        if key not in self._like:
            sure = self._sure.get(value, np.empty(0, dtype=np.int64))
            same = sure[(self._values[sure] == wanted).all(axis=1)]
            self._like[key] = same if len(same) >= ENOUGH else sure
        return self._like[key]


def _friend(pool: Rows, row: int, draw: np.random.Generator) -> int:
    """Another image of the pool; the image itself where there is none."""
    others = pool[pool != row]
    return int(draw.choice(others)) if len(others) else row


def exchanged(
    found: Scan, findings: Sequence[Finding], which: Exchange, seen: ImageStore, seed: int
) -> tuple[Tensor, Tensor]:
    """The images with the donors' cues, and their controls, in the pictures of `seen`."""
    made = read(seen, which.recipients)
    control = made.clone()
    ranked = sorted(range(len(findings)), key=lambda k: _turn(findings[k].lens))
    for k in ranked:
        turned = np.flatnonzero(which.before[:, k] != which.after[:, k])
        if len(turned):
            some = which.part(turned)
            made[turned], control[turned] = _one(
                found, findings[k], k, some, made[turned], control[turned], seen, seed
            )
    return made, control


def _turn(lens: str) -> int:
    return FIRST.index(lens) if lens in FIRST else len(FIRST)


def _one(
    found: Scan,
    finding: Finding,
    k: int,
    which: Exchange,
    own: Tensor,
    kept: Tensor,
    seen: ImageStore,
    seed: int,
) -> tuple[Tensor, Tensor]:
    """Finding `k` exchanged in the images `own`, and the same cut in their controls `kept`."""
    theirs, friends = read(seen, which.donors[:, k]), read(seen, which.friends[:, k])
    if finding.lens in CHANGES:
        change = CHANGES[finding.lens]
        return change(own, theirs).clamp(0, 1), change(kept, friends).clamp(0, 1)
    side = int(finding.evidence["transplant"]["towards"])  # the value whose images carry it
    carries: Bools = which.after[:, k] != side
    carriers = torch.where(torch.from_numpy(carries)[:, None, None, None], own, theirs)
    size = (found.size, found.size)
    small = F.interpolate(carriers, size, mode="bilinear", antialias=True).clamp(0, 1)
    cue = scaled(telling_windows(found.bank, finding.reader, small, side), small, own)
    control = [
        _elsewhere(corner, bool(there), own.shape[-1], seed, int(row))
        for corner, there, row in zip(cue, carries, which.recipients, strict=True)
    ]
    return lay(finding.lens, own, theirs, cue), lay(finding.lens, kept, friends, control)


def _elsewhere(cue: Corner, there: bool, side: int, seed: int, row: int) -> Corner:
    """A window anywhere; where the cue is in the picture, one that leaves it to be seen."""
    tried = random_windows(TRIED, side, numpy_generator(seed, "scan/exchange/control", row))
    if not there:
        return tried[0]
    height, width = window_of(side)

    def hidden(corner: Corner) -> int:
        down, along = abs(corner[0] - cue[0]), abs(corner[1] - cue[1])
        return max(0, height - down) * max(0, width - along)

    return min(tried, key=hidden)
