"""What each lens's transplant takes from a donor: pure functions of images [B, 3, S, S]."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.scan.lenses.saturation import give_saturation
from d2cp.scan.lenses.simple import luma, ring_of
from d2cp.scan.lenses.tint import give_tint


def give_colour(images: Tensor, donors: Tensor) -> Tensor:
    """Mean and spread of each channel from the donor."""
    ours, theirs = (
        (x.mean((2, 3), keepdim=True), x.std((2, 3), keepdim=True) + 0.01) for x in (images, donors)
    )
    return (images - ours[0]) / ours[1] * theirs[1] + theirs[0]


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


def give_surroundings(images: Tensor, donors: Tensor) -> Tensor:
    """The outer half of the donor's area."""
    return torch.where(_middle(images), images, donors)


def give_middle(images: Tensor, donors: Tensor) -> Tensor:
    """The inner half of the donor's area: where the object of a picture usually is."""
    return torch.where(_middle(images), donors, images)


def _middle(images: Tensor) -> Tensor:
    side = images.shape[-1]
    edge = round(side * (1 - math.sqrt(0.5)) / 2)
    line = torch.zeros(side, dtype=torch.bool)
    line[edge : side - edge] = True
    return line[:, None] & line


WINDOWS = ("repeated detail", "coloured detail", "local pattern")
"""Lenses whose transplant is a window of the donor."""
CHANGES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "colour": give_colour,
    "tint": give_tint,
    "layout": give_surroundings,
    "saturation": give_saturation,
    "sharpness": give_sharpness,
    "border": give_border,
    "texture": give_surroundings,
}
WHOLLY_GIVEN = (*WINDOWS, "border")
"""Lenses whose transplant gives all that they see of a cue: a cue of theirs is carried."""
WHOLE_PICTURE = ("texture", "layout")
"""Lenses that move with everything in a picture, the object included: only what lies around the
middle can be told apart from it."""
