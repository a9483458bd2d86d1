"""The transplant test: does the answer change when only the cue is put into another picture?

Each lens has its own transplant, from a donor to a recipient that the finding puts on another
side. The control differs in what should not matter. For a local pattern it is another window of
the same donor; for lenses that move with the whole picture, of which the surroundings are given, it
is the middle of the same donor, where its object is; for all else a donor that is on the
recipient's own side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.core.rng import numpy_generator
from d2cp.scan.bank import COLOURED, Bank
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.changes import CHANGES, WHOLE_PICTURE, WINDOWS, give_middle
from d2cp.scan.eyes import Eyes
from d2cp.scan.finding import Reader
from d2cp.scan.lenses.coloured import give_detail
from d2cp.scan.patch_heat import patch_heat
from d2cp.scan.values import values_of
from d2cp.scan.workers import each

Corner = tuple[int, int]

WINDOW = (0.24, 0.44)
"""Height and width of the window as shares of the side: room for a label, not for an animal."""
PAIRS = 64
"""Recipients for each side that donors come from."""
SIDES = 4
"""Sides tried at most, the most frequent first."""


OUTER, MOSTLY = 0.25, 0.6
"""A quarter of the places a window can have is an edge; a cue with 60% of its windows there is
mostly there."""


@dataclass(frozen=True)
class Transplant:
    """Shares of recipients that go over to the donor's side, with the cue and with the control."""

    flips: float
    control: float
    towards: int
    """The value whose donors carry the cue: the other one may be no more than its absence."""
    pairs: int
    place: str = ""
    """Where the windows were that a local pattern was taken from, in words."""

    @property
    def gap(self) -> float:
        return self.flips - self.control


def read_images(bank: Bank, reader: Reader, images: Tensor, extra: Tensor) -> Tensor:
    """Scores [B, T], differentiable in the images; `extra` is what the other lenses add."""
    features = bank.features(images, reader.weight)
    total = extra
    for lens, weight in reader.weight.items():
        if lens in features:
            centre, scale = (torch.from_numpy(a[lens]) for a in (reader.centre, reader.scale))
            total = total + (features[lens] - centre) / scale @ torch.from_numpy(weight)
    return total


def other_lenses(reader: Reader, tabled: dict[str, Floats], rows: Ints) -> Tensor:
    """What lenses that do not look at pixels add to the score, with the intercept: [B, T]."""
    total = np.repeat(reader.intercept[None], len(rows), axis=0)
    for lens, weight in reader.weight.items():
        if lens in tabled:
            total += ((tabled[lens][rows] - reader.centre[lens]) / reader.scale[lens]) @ weight
    return torch.from_numpy(total.astype(np.float32))


def transplant_test(
    lens: str,
    reader: Reader,
    eyes: Eyes,
    tabled: dict[str, Floats],
    scores: Floats,
    threshold: float | None,
    rows: Ints,
    seed: int,
) -> Transplant:
    """The side with the larger gap, among images `rows` that the finding did not learn from."""
    value = values_of(scores, threshold)
    sides, counts = np.unique(value[rows], return_counts=True)
    if len(sides) < 2:
        return Transplant(0.0, 0.0, int(sides[0]), 0)
    jobs = [
        job
        for side in sides[np.argsort(-counts, kind="stable")][:SIDES]
        for job in _tries(int(side), lens, scores, value, threshold, rows, eyes.size, seed)
    ]

    def flipped(job: Tries) -> tuple[int, int, list[Corner]]:
        corners: list[Corner] = []
        if lens in WINDOWS:
            corners = telling_windows(eyes.bank, reader, eyes.images(job.donors), job.side)
        cue, other = (
            int((values_of(s, threshold) == job.side).sum())
            for s in _pair(lens, reader, eyes, tabled, job, corners)
        )
        return cue, other, corners

    tried = each(flipped, jobs)
    found = []
    for side in dict.fromkeys(job.side for job in jobs):
        mine = [(job, part) for job, part in zip(jobs, tried, strict=True) if job.side == side]
        n = sum(len(job.recipients) for job, _ in mine)
        cue, control = sum(part[0] for _, part in mine) / n, sum(part[1] for _, part in mine) / n
        place = place_of([c for _, part in mine for c in part[2]], eyes.size)
        found.append(Transplant(cue, control, side, n, place))
    return max(found, key=lambda t: t.gap)


@dataclass(frozen=True)
class Tries:
    """Recipients, and for each a sure donor of `side`, a friend of the recipient's own side, and
    the corner of a window for the control."""

    side: int
    recipients: Ints
    donors: Ints
    friends: Ints
    corners: list[Corner]


def _tries(
    side: int,
    lens: str,
    scores: Floats,
    value: Ints,
    threshold: float | None,
    rows: Ints,
    size: int,
    seed: int,
) -> list[Tries]:
    draw = numpy_generator(seed, f"scan/transplant/{lens}", side)
    theirs, ours = rows[value[rows] == side], rows[value[rows] != side]
    # Donors are images of which the finding is sure: its surer half.
    own = scores[theirs, side] if threshold is None else np.abs(scores[theirs, 0] - threshold)
    sure = theirs[np.argsort(-own, kind="stable")[: max(1, len(theirs) // 2)]]
    recipients = draw.permutation(ours)[:PAIRS]
    donors, friends = (draw.choice(pool, len(recipients)) for pool in (sure, ours))
    corners = random_windows(len(recipients), size, draw)
    parts = [slice(start, start + 16) for start in range(0, len(recipients), 16)]
    return [Tries(side, recipients[p], donors[p], friends[p], corners[p]) for p in parts]


def _pair(
    lens: str,
    reader: Reader,
    eyes: Eyes,
    tabled: dict[str, Floats],
    job: Tries,
    corners: list[Corner],
) -> tuple[Floats, Floats]:
    """Scores of the recipients with the cue, and with the control; `corners` are of the windows
    that tell most in the donors."""
    extra = other_lenses(reader, tabled, job.recipients)
    images = eyes.images(job.recipients)
    if lens in tabled:  # the cue is not in the picture: the recipient gets the donor's entry
        with torch.no_grad():
            plain = read_images(eyes.bank, reader, images, torch.zeros_like(extra))
            cue = plain + other_lenses(reader, tabled, job.donors)
            other = plain + other_lenses(reader, tabled, job.friends)
        return cue.numpy(), other.numpy()
    given = eyes.images(job.donors)
    if lens in WINDOWS:
        changed = lay(lens, images, given, corners)
        compared = lay(lens, images, given, job.corners)
    else:
        changed = CHANGES[lens](images, given)
        compared = (
            give_middle(images, given)
            if lens in WHOLE_PICTURE
            else CHANGES[lens](images, eyes.images(job.friends))
        )
    with torch.no_grad():
        made = [read_images(eyes.bank, reader, x.clamp(0, 1), extra) for x in (changed, compared)]
    return made[0].numpy(), made[1].numpy()


def telling_windows(bank: Bank, reader: Reader, images: Tensor, side: int) -> list[Corner]:
    """Top left corners of the windows that hold most of what pushes the score towards `side`."""
    heat = patch_heat(bank, reader, images, [side] * len(images)).double()
    whole = F.pad(heat.cumsum(1).cumsum(2), (1, 0, 1, 0))
    height, width = window_of(images.shape[-1])
    rows = whole[:, height:] - whole[:, :-height]
    total = rows[:, :, width:] - rows[:, :, :-width]
    return [divmod(int(best), total.shape[-1]) for best in total.flatten(1).argmax(1)]


def window_of(side: int) -> tuple[int, int]:
    """Height and width of a window in a picture of that side."""
    return max(2, round(side * WINDOW[0])), max(2, round(side * WINDOW[1]))


def place_of(corners: list[Corner], side: int) -> str:
    """Where most windows are, in words; nothing where there is none."""
    if not corners:
        return ""
    height, width = window_of(side)
    down, along = np.array(corners).T / np.array([[max(1, side - height)], [max(1, side - width)]])
    words = [
        word
        for word, there in (
            ("upper", down < OUTER),
            ("lower", down > 1 - OUTER),
            ("left", along < OUTER),
            ("right", along > 1 - OUTER),
        )
        if there.mean() >= MOSTLY
    ]
    if words:
        return f"mostly {' '.join(words)} {'corner' if len(words) > 1 else 'edge'}"
    inside = (np.abs(down - 0.5) < OUTER) & (np.abs(along - 0.5) < OUTER)
    return "mostly in the middle" if inside.mean() >= MOSTLY else "in changing places"


def random_windows(n: int, side: int, draw: np.random.Generator) -> list[Corner]:
    height, width = window_of(side)
    tops = draw.integers(side - height + 1, size=n)
    lefts = draw.integers(side - width + 1, size=n)
    return [(int(t), int(left)) for t, left in zip(tops, lefts, strict=True)]


def lay(lens: str, images: Tensor, donors: Tensor, corners: list[Corner]) -> Tensor:
    """The donors' windows in the images. Of coloured details only what stands out is laid there:
    the edge of a window of another colour would stand out itself."""
    given = give_detail(images, donors) if lens == COLOURED else donors
    return paste(images, given, corners).clamp(0, 1)


def paste(images: Tensor, donors: Tensor, corners: list[Corner]) -> Tensor:
    """The donors' windows laid on the images, at the place they come from."""
    height, width = window_of(images.shape[-1])
    made = images.clone()
    for i, (top, left) in enumerate(corners):
        part = (slice(None), slice(top, top + height), slice(left, left + width))
        made[i][part] = donors[i][part]
    return made
