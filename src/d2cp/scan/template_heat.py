"""Where in a picture repeated details lie: the pixels by which they are recognised.

A template is larger than the strokes that it knows a label by. So what its best match adds to the
score is shared out among the pixels of the matching piece, by how much each adds to the cosine:
slope × brightness, of which the piece's own size and contrast are common factors.
"""

from __future__ import annotations

import torch
from torch import Tensor

from d2cp.scan.lenses.templates import STRIDE, Templates


def template_heat(templates: Templates, weight: Tensor, usual: Tensor, fine: Tensor) -> Tensor:
    """[B, S, S] of grey pictures [B, S, S]: what the matches add to the score, pixel by pixel, with
    `weight` [B, K] for each template. A match no better than usual [K], or one that speaks against
    the score, adds nothing."""
    pixels = templates.in_pixels()
    heat = torch.zeros_like(fine)
    for number, picture in enumerate(fine):
        answer = templates.templates @ templates.pieces(picture)
        best, place = answer.max(1)
        push = weight[number].clamp(min=0) * (best - usual).clamp(min=0)
        chosen = push.nonzero()[:, 0]
        windows = picture.unfold(0, templates.side, STRIDE).unfold(1, templates.side, STRIDE)
        pieces = windows.flatten(0, 1)[place[chosen]]
        added = pixels[chosen] * (pieces - pieces.mean((1, 2), keepdim=True))
        added = added.clamp(min=0)
        share = push[chosen, None, None] / added.sum((1, 2), keepdim=True).clamp(min=1e-9)
        where = _indices(place[chosen], windows.shape[1], templates.side, picture.shape[1])
        heat[number].view(-1).index_add_(0, where.flatten(), (added * share).flatten())
    return heat


def _indices(place: Tensor, wide: int, side: int, width: int) -> Tensor:
    """Flat pixels [n, side²] of the pieces at `place` [n], `wide` of which are in a row."""
    corner = torch.div(place, wide, rounding_mode="floor") * STRIDE * width + place % wide * STRIDE
    line = torch.arange(side)
    return corner[:, None] + (line[:, None] * width + line).flatten()
