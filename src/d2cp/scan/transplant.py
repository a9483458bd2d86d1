"""The transplant test: does the answer change when only the cue is put into another picture?

Each lens has its own transplant, from a donor to a recipient that the finding puts on another
side. The control differs in what should not matter: for a local pattern it is another window of
the same donor, for all else a donor that is on the recipient's own side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.core.rng import numpy_generator
from d2cp.scan.bank import Bank
from d2cp.scan.batched import Floats, Ints
from d2cp.scan.eyes import Eyes
from d2cp.scan.finding import Reader
from d2cp.scan.lenses.simple import GRID, luma, ring_of
from d2cp.scan.lenses.tint import give_tint
from d2cp.scan.patch_heat import patch_heat
from d2cp.scan.values import values_of

WINDOW = (0.24, 0.44)
"""Height and width of the window as shares of the side: room for a label, not for an animal."""
PAIRS = 64
"""Recipients for each side that donors come from."""
SIDES = 4
"""Sides tried at most, the most frequent first."""


@dataclass(frozen=True)
class Transplant:
    """Shares of recipients that go over to the donor's side, with the cue and with the control."""

    flips: float
    control: float
    towards: int
    """The value whose donors carry the cue: the other one may be no more than its absence."""
    pairs: int

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
    found = []
    for side in sides[np.argsort(-counts, kind="stable")][:SIDES]:
        draw = numpy_generator(seed, f"scan/transplant/{lens}", int(side))
        theirs, ours = rows[value[rows] == side], rows[value[rows] != side]
        # Donors are images of which the finding is sure: its surer half.
        own = scores[theirs, side] if threshold is None else np.abs(scores[theirs, 0] - threshold)
        sure = theirs[np.argsort(-own, kind="stable")[: max(1, len(theirs) // 2)]]
        recipients = draw.permutation(ours)[:PAIRS]
        donors, friends = (draw.choice(pool, len(recipients)) for pool in (sure, ours))
        flips = control = 0
        for start in range(0, len(recipients), 32):
            part = slice(start, start + 32)
            made = _pair(
                lens,
                reader,
                eyes,
                tabled,
                recipients[part],
                donors[part],
                friends[part],
                int(side),
                draw,
            )
            cue, other = (values_of(s, threshold) == side for s in made)
            flips, control = flips + int(cue.sum()), control + int(other.sum())
        n = len(recipients)
        found.append(Transplant(flips / n, control / n, int(side), n))
    return max(found, key=lambda t: t.gap)


def _pair(
    lens: str,
    reader: Reader,
    eyes: Eyes,
    tabled: dict[str, Floats],
    recipients: Ints,
    donors: Ints,
    friends: Ints,
    side: int,
    draw: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Scores of the recipients with the cue, and with the control."""
    extra = other_lenses(reader, tabled, recipients)
    images = eyes.images(recipients)
    if lens in tabled:  # the cue is not in the picture: the recipient gets the donor's entry
        with torch.no_grad():
            plain = read_images(eyes.bank, reader, images, torch.zeros_like(extra))
            cue = plain + other_lenses(reader, tabled, donors)
            other = plain + other_lenses(reader, tabled, friends)
        return cue.numpy(), other.numpy()
    given = eyes.images(donors)
    if lens == "local pattern":
        boxes = telling_windows(eyes.bank, reader, given, side)
        changed = paste(images, given, boxes)
        compared = paste(images, given, random_windows(images, draw))
    else:
        change = CHANGES[lens]
        changed, compared = change(images, given), change(images, eyes.images(friends))
    with torch.no_grad():
        made = [read_images(eyes.bank, reader, x.clamp(0, 1), extra) for x in (changed, compared)]
    return made[0].numpy(), made[1].numpy()


def telling_windows(bank: Bank, reader: Reader, images: Tensor, side: int) -> list[tuple[int, int]]:
    """Top left corners of the windows that hold most of what pushes the score towards `side`."""
    heat = patch_heat(bank, reader, images, [side] * len(images))
    total = F.avg_pool2d(heat[:, None], window_of(images), 1)[:, 0]
    return [divmod(int(best), total.shape[-1]) for best in total.flatten(1).argmax(1)]


def window_of(images: Tensor) -> tuple[int, int]:
    side = images.shape[-1]
    return max(2, round(side * WINDOW[0])), max(2, round(side * WINDOW[1]))


def random_windows(images: Tensor, draw: np.random.Generator) -> list[tuple[int, int]]:
    height, width = window_of(images)
    side = images.shape[-1]
    tops = draw.integers(side - height + 1, size=len(images))
    lefts = draw.integers(side - width + 1, size=len(images))
    return [(int(t), int(left)) for t, left in zip(tops, lefts, strict=True)]


def paste(images: Tensor, donors: Tensor, corners: list[tuple[int, int]]) -> Tensor:
    """The donors' windows laid on the images, at the place they come from."""
    height, width = window_of(images)
    made = images.clone()
    for i, (top, left) in enumerate(corners):
        part = (slice(None), slice(top, top + height), slice(left, left + width))
        made[i][part] = donors[i][part]
    return made


def give_colour(images: Tensor, donors: Tensor) -> Tensor:
    """Mean and spread of each channel from the donor."""
    ours, theirs = (
        (x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True) + 0.01) for x in (images, donors)
    )
    return (images - ours[0]) / ours[1] * theirs[1] + theirs[0]


def give_layout(images: Tensor, donors: Tensor) -> Tensor:
    """The low frequencies from the donor."""

    def low(x: Tensor) -> Tensor:
        small = F.adaptive_avg_pool2d(x, GRID)
        return F.interpolate(small, x.shape[-2:], mode="bilinear", align_corners=False)

    return images - low(images) + low(donors)


def give_sharpness(images: Tensor, donors: Tensor) -> Tensor:
    """The energy in each ring of spatial frequency from the donor."""
    rings = ring_of(images.shape[-1])
    member = F.one_hot(rings.flatten()).to(images.dtype)

    def energy(x: Tensor) -> Tensor:
        power: Tensor = torch.fft.rfft2(luma(x)).abs().square().flatten(1) @ member
        return power

    gain = torch.sqrt((energy(donors) + 1e-6) / (energy(images) + 1e-6)).clamp(0.05, 20)
    gain[:, 0] = 1  # brightness and the coarsest ring stay
    spectrum: Tensor = torch.fft.rfft2(images) * (gain @ member.T).reshape(-1, 1, *rings.shape)
    made: Tensor = torch.fft.irfft2(spectrum, s=images.shape[-2:])
    return made


def give_border(images: Tensor, donors: Tensor) -> Tensor:
    """The outermost eighth of the donor, on every side."""
    edge = max(1, images.shape[-1] // 8)
    made = donors.clone()
    made[..., edge:-edge, edge:-edge] = images[..., edge:-edge, edge:-edge]
    return made


def give_texture(images: Tensor, donors: Tensor) -> Tensor:
    """Every second field of a 6 × 6 board from the donor."""
    field = torch.arange(images.shape[-1]) * 6 // images.shape[-1]
    theirs = (field[:, None] + field) % 2 == 1
    return torch.where(theirs, donors, images)


CHANGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "colour": give_colour,
    "tint": give_tint,
    "layout": give_layout,
    "sharpness": give_sharpness,
    "border": give_border,
    "texture": give_texture,
}
