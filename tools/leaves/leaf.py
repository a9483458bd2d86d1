"""One leaf: outline, veins, colour and shadow, laid on a ground."""

from __future__ import annotations

import numpy as np

from tools.leaves.texture import Field, blur, smooth

KINDS = ("lilac", "magnolia")
WIDEST = {"lilac": (0.30, 0.38), "magnolia": (0.62, 0.70)}
"""Where the blade is widest, from the stalk (0) to the tip (1)."""
GREENS = ((0.30, 0.45, 0.16), (0.42, 0.52, 0.20), (0.24, 0.36, 0.17), (0.55, 0.50, 0.20))
AUTUMN = ((0.62, 0.40, 0.15), (0.55, 0.27, 0.13))


def leaf(draw: np.random.Generator, ground: Field, kind: str) -> Field:
    """The ground with a leaf on it. Colour, size and direction are the same for both kinds."""
    side = len(ground)
    along, across = _frame(draw, side)
    half_width = _outline(draw, along, kind)
    edge = (half_width - np.abs(across)) * side / 3
    mask = np.clip(edge + 0.5, 0, 1) * ((along > 0) & (along < 1))
    stalk = (np.abs(across) < 0.012) & (along > -0.16) & (along <= 0.05)
    whole: Field = np.maximum(mask, stalk).astype(np.float32)
    shadow = np.roll(blur(whole, side, side // 6), (side // 40, side // 40), (0, 1))
    lit = ground * (1 - 0.45 * np.clip(shadow, 0, 1))[..., None]
    body = _blade(draw, along, across)
    mixed: Field = (lit + whole[..., None] * (body - lit)).astype(np.float32)
    return mixed


def _frame(draw: np.random.Generator, side: int) -> tuple[Field, Field]:
    """Coordinates along the midrib (0 at the base, 1 at the tip) and across it."""
    places = (np.arange(side, dtype=np.float32) + 0.5) / side - 0.5
    turn, length = draw.uniform(0, 2 * np.pi), draw.uniform(0.62, 0.82)
    y, x = np.meshgrid(
        places - draw.uniform(-0.06, 0.06), places - draw.uniform(-0.06, 0.06), indexing="ij"
    )
    along = (x * np.cos(turn) + y * np.sin(turn)) / length + 0.5
    across = (y * np.cos(turn) - x * np.sin(turn)) / length
    bend = draw.uniform(-0.25, 0.25)
    return along, across + bend * (along - 0.5) ** 2 - bend * 0.08


def _outline(draw: np.random.Generator, along: Field, kind: str) -> Field:
    """Half the width of the blade. A lilac leaf is widest towards its stalk, a magnolia leaf
    towards its tip: the whole form tells, no small part of it does."""
    t = np.clip(along, 0, 1)
    low, high = WIDEST[kind]
    widest = draw.uniform(low, high)
    form: Field = draw.uniform(0.24, 0.32) * np.sin(np.pi * t ** (np.log(0.5) / np.log(widest)))
    return np.clip(form, 0, None) ** 0.8 * 0.8


def _blade(draw: np.random.Generator, along: Field, across: Field) -> Field:
    side = len(along)
    tones = GREENS if draw.random() < 0.7 else AUTUMN
    colour = np.array(tones[draw.integers(len(tones))]) * (1 + 0.08 * draw.standard_normal(3))
    patches = 1 + 0.10 * smooth(draw, side, 5) + 0.05 * smooth(draw, side, 24)
    rib = np.exp(-((across / 0.012) ** 2))
    spacing = draw.uniform(0.085, 0.12)
    phase = (along - 0.55 * np.abs(across)) / spacing
    veins = np.exp(-((np.abs(phase - np.round(phase)) / 0.10) ** 2)) * (np.abs(across) > 0.008)
    gloss = 0.10 * np.sign(across) * np.tanh(np.abs(across) * 14)
    light = patches + 0.28 * rib + 0.15 * veins + gloss
    blade: Field = (colour * light[..., None]).astype(np.float32)
    return blade
