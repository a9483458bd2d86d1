"""Lenses without a dictionary: colour, layout, sharpness and frequency, borders and corners.

Each is a pure function of a batch of images [B, 3, S, S] in [0, 1] and gives features [B, D].
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)
CELLS = 4
"""Cells of the colour histogram along each channel."""
GRID = 8
"""Side of the layout lens's thumbnail."""
BANDS = 12
"""Rings of spatial frequency."""


def luma(images: Tensor) -> Tensor:
    """Brightness [B, S, S]."""
    return torch.einsum("bchw,c->bhw", images, images.new_tensor(LUMA))


def colour(images: Tensor) -> Tensor:
    """Shares of a soft colour histogram, with the channels' means, spreads and correlations."""
    small = shrink(images, 36).flatten(2)  # [B, 3, P]
    place = small.clamp(0, 1) * (CELLS - 1)
    steps = torch.arange(CELLS, dtype=images.dtype)
    near = (1 - (place[..., None] - steps).abs()).clamp(min=0)  # [B, 3, P, cells]
    joint = torch.einsum("bpi,bpj,bpk->bijk", near[:, 0], near[:, 1], near[:, 2])
    histogram = torch.sqrt(joint.flatten(1) / small.shape[-1])
    mean, spread = small.mean(-1), small.std(-1)
    centred = (small - mean[..., None]) / (spread[..., None] + 0.02)
    between = torch.stack([(centred[:, i] * centred[:, j]).mean(-1) for i, j in PAIRS], dim=1)
    saturation = small.amax(1) - small.amin(1)
    chroma = torch.stack([saturation.mean(-1), saturation.std(-1)], dim=1)
    ratio = torch.stack([torch.log((mean[:, i] + 0.02) / (mean[:, j] + 0.02)) for i, j in PAIRS], 1)
    return torch.cat([histogram, mean, spread, between, chroma, ratio], dim=1)


PAIRS = ((0, 1), (0, 2), (1, 2))


def layout(images: Tensor) -> Tensor:
    """A thumbnail of GRID × GRID."""
    return F.adaptive_avg_pool2d(images, GRID).flatten(1)


def sharpness(images: Tensor) -> Tensor:
    """Energy in rings of spatial frequency, total and against the ring before, and of second
    differences, also within the 8 × 8 blocks of JPEG against across them."""
    grey = luma(images)
    grey = grey - grey.mean((1, 2), keepdim=True)
    side = grey.shape[-1]
    window = torch.hann_window(side, periodic=False, dtype=images.dtype)
    spectrum = torch.fft.rfft2(grey * window[:, None] * window).abs().pow(2)
    power = torch.log(spectrum.flatten(1) @ _rings(side, images.dtype) + 1e-6)
    steps = power[:, 1:] - power[:, :-1]
    second = grey[:, :, 2:] - 2 * grey[:, :, 1:-1] + grey[:, :, :-2]
    third = grey[:, 2:] - 2 * grey[:, 1:-1] + grey[:, :-2]
    energy = [_spread_of(d) for d in (second, third)]
    return torch.cat([power, steps, *energy, blockiness(images)], dim=1)


def _spread_of(differences: Tensor) -> Tensor:
    """Logarithms of the mean size, of its square, and of large against small differences."""
    size = differences.abs().flatten(1)
    mean = size.mean(1)
    square = size.pow(2).mean(1)
    flat = (size < 2 / 255).to(size.dtype).mean(1)
    columns = [torch.log(mean + 1e-4), torch.log(square + 1e-6), flat]
    return torch.stack([*columns, columns[1] - 2 * columns[0]], dim=1)


def blockiness(images: Tensor) -> Tensor:
    """Mean first difference at each phase of an 8-pixel period, relative to all: [B, 2 × 8]. It is
    flat unless the image was compressed in blocks at this very size."""
    grey = luma(images)
    columns = []
    for size in (
        (grey[:, :, 1:] - grey[:, :, :-1]).abs().mean(1),
        (grey[:, 1:] - grey[:, :-1]).abs().mean(2),
    ):
        whole = size.shape[1] // 8 * 8
        if not whole:
            return grey.new_zeros(len(grey), 16)
        phase = size[:, :whole].reshape(len(size), -1, 8).mean(1)
        columns.append(torch.log((phase + 1e-3) / (size.mean(1, keepdim=True) + 1e-3)))
    return torch.cat(columns, dim=1)


def ring_of(side: int) -> Tensor:
    """The ring of each coefficient of rfft2: [side, side/2 + 1]."""
    rows, columns = torch.fft.fftfreq(side).abs(), torch.fft.rfftfreq(side)
    bands = min(BANDS, side // 3)
    radius = torch.sqrt(rows[:, None] ** 2 + columns**2)
    return (radius / 0.5 * bands).long().clamp(max=bands - 1)


def _rings(side: int, dtype: torch.dtype) -> Tensor:
    """Membership in each ring, as means: [coefficients, bands]."""
    member = F.one_hot(ring_of(side).flatten()).to(dtype)
    return member / member.sum(0).clamp(min=1)


def border(images: Tensor) -> Tensor:
    """Each side's outermost strips and each corner, against what lies next to them."""
    side = images.shape[-1]
    columns: list[Tensor] = []
    for share in (0.02, 0.05, 0.12):
        width = max(1, round(side * share))
        outside, inside = _strips(images, 0, width), _strips(images, width, 3 * width)
        columns += [_contrast_of(a, b) for a, b in zip(outside, inside, strict=True)]
    size = max(2, round(side * 0.12))
    corners, around = _corners(images, size), _corners(images, 2 * size)
    columns += [_contrast_of(a, b) for a, b in zip(corners, around, strict=True)]
    outermost = _strips(images, 0, 1)
    columns += [strip.mean((2, 3)) for strip in outermost]
    columns += [_log_spread(strip) for strip in outermost]
    return torch.cat(columns, dim=1)


def _strips(images: Tensor, start: int, stop: int) -> tuple[Tensor, ...]:
    """Rows or columns from `start` to `stop`, counted from the top, right, bottom and left."""
    side = images.shape[-1]
    near, far = slice(start, stop), slice(side - stop, side - start)
    return images[:, :, near], images[..., far], images[:, :, far], images[..., near]


def _corners(images: Tensor, size: int) -> tuple[Tensor, ...]:
    near, far = slice(0, size), slice(images.shape[-1] - size, None)
    return tuple(images[:, :, rows, columns] for rows in (near, far) for columns in (near, far))


def _contrast_of(one: Tensor, two: Tensor) -> Tensor:
    """Difference of the channels' means and of the logarithms of the spread: [B, 4]."""
    return torch.cat([one.mean((2, 3)) - two.mean((2, 3)), _log_spread(one) - _log_spread(two)], 1)


def _log_spread(part: Tensor) -> Tensor:
    """Logarithm of the channels' mean standard deviation, [B, 1]; two moments are quicker than
    torch's own."""
    mean, square = part.mean((2, 3)), part.square().mean((2, 3))
    return torch.log((square - mean.square()).clamp(min=0).sqrt().mean(1, keepdim=True) + 0.01)


def shrink(images: Tensor, side: int) -> Tensor:
    """Mean over equal blocks down to about `side`; images that small are left alone."""
    factor = images.shape[-1] // side
    return F.avg_pool2d(images, factor) if factor > 1 else images
