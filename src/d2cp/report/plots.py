"""Plots as inline SVG. Widths are percentages, so that a plot fits any screen with its text at
reading size: names and figures stand beside it as ordinary text, and colours come from the style
sheet (light and dark)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from d2cp.core.arrays import Ints
from d2cp.report.outcomes import Figure, Pair
from d2cp.report.words import count, interval, percent

_EDGE = 1.5  # per cent kept free at both ends, so that a mark at 0 or 100 is whole
_TRACK = 46
_BINS = 48


def _x(share: float) -> str:
    """A share of the scale as a position."""
    return f"{_EDGE + (100 - 2 * _EDGE) * min(1.0, max(0.0, share)):.2f}%"


def svg(body: Markup, height: int, title: str, description: str = "") -> Markup:
    about = Markup("<desc>{}</desc>").format(description) if description else Markup("")
    return Markup(
        '<svg class="plot" role="img" width="100%" height="{}" focusable="false">'
        "<title>{}</title>{}{}</svg>"
    ).format(height, title, about, body)


def accuracy_track(pair: Pair) -> Markup:
    """One line of the before/after plot: a ring before, a dot after, their intervals as bars."""
    parts = [_grid()]
    for figure, kind, y in ((pair.before, "before", 18), (pair.after, "after", 28)):
        if figure is not None:
            parts.append(_mark(figure, kind, y))
    return svg(Markup("").join(parts), _TRACK, describe(pair))


def describe(pair: Pair) -> str:
    spoken = [pair.name]
    for figure, word in ((pair.before, "before"), (pair.after, "after")):
        if figure is not None:
            spread = f" (interval {interval(figure.bounds)})" if figure.bounds else ""
            spoken.append(f"{word} {percent(figure.value)}{spread}")
    return ", ".join(spoken)


def axis() -> Markup:
    """The scale under tracks."""
    marks = ((0, "start"), (50, "middle"), (100, "end"))
    return Markup('<svg class="plot" width="100%" height="16" aria-hidden="true">{}</svg>').format(
        Markup("").join(
            Markup('<text x="{0}%" y="12" text-anchor="{1}">{0}%</text>').format(share, anchor)
            for share, anchor in marks
        )
    )


def comparison_track(
    name: str, worst: Figure, mean: Figure | None, paper: float | None, ours: bool
) -> Markup:
    """One method: worst group (dot, interval), mean (tick), the paper's worst group (diamond)."""
    parts = [_grid()]
    if mean is not None:
        parts.append(
            Markup('<line class="tick" x1="{0}" x2="{0}" y1="16" y2="30"/>').format(_x(mean.value))
        )
    parts.append(_mark(worst, "after" if ours else "other", 23))
    if paper is not None:
        parts.append(
            Markup(
                '<svg x="{}" y="23" overflow="visible">'
                '<path class="paper" d="M0-6 6 0 0 6-6 0Z"/></svg>'
            ).format(_x(paper))
        )
    spoken = f"{name}: {percent(worst.value)}"
    if worst.bounds:
        spoken += f" (interval {interval(worst.bounds)})"
    if mean is not None:
        spoken += f", mean {percent(mean.value)}"
    if paper is not None:
        spoken += f", paper {percent(paper)}"
    return svg(Markup("").join(parts), _TRACK, spoken)


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Scores of one class."""

    name: str
    n: int
    drawing: Markup


def score_histograms(
    scores: NDArray[np.float64], y: Ints, names: Sequence[str], thresholds: Sequence[float]
) -> list[Histogram]:
    """One row a class on a common scale. Heights are square roots, so that the few images against
    the shortcut can be seen beside the many that follow it."""
    known = np.isfinite(scores)
    if not known.any():
        return []
    low, high = (float(v) for v in np.quantile(scores[known], [0.001, 0.999]))
    low, high = min([low, *thresholds]), max([high, *thresholds])
    if not high > low:
        low, high = low - 0.5, high + 0.5
    cuts = [(cut - low) / (high - low) for cut in thresholds]
    made = []
    for label, name in enumerate(names):
        mine = scores[known & (y == label)]
        if len(mine):
            shares = np.clip((mine - low) / (high - low), 0, 1)
            made.append(Histogram(name=name, n=len(mine), drawing=_histogram(name, shares, cuts)))
    return made


def _histogram(name: str, shares: NDArray[np.float64], cuts: list[float]) -> Markup:
    """Bars of values on the unit scale, coloured by the side of the cut they lie on."""
    height = 64
    counts = np.histogram(shares, _BINS, (0, 1))[0]
    width = (100 - 2 * _EDGE) / _BINS
    parts = []
    for index in np.flatnonzero(counts).tolist():
        tall = max(1.5, (height - 6) * math.sqrt(counts[index] / counts.max()))
        side = sum((index + 0.5) / _BINS > cut for cut in cuts) % 2
        parts.append(
            Markup(
                '<rect class="bar side-{}" x="{:.2f}%" y="{:.1f}" width="{:.2f}%" height="{:.1f}"/>'
            ).format(side, _EDGE + index * width, height - tall, width * 0.88, tall)
        )
    parts += [
        Markup('<line class="cut" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(_x(cut), height)
        for cut in cuts
    ]
    parts.append(Markup('<line class="base" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(height))
    spoken = f"Scores of {name}, {count(len(shares), 'image')}"
    if cuts:
        above = int((shares > cuts[0]).sum())
        spoken += f": {len(shares) - above:,} below the threshold, {above:,} above"
    return svg(Markup("").join(parts), height + 1, spoken)


def _grid() -> Markup:
    lines = [
        Markup('<line class="grid" x1="{0}" x2="{0}" y1="0" y2="{1}"/>').format(_x(share), _TRACK)
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    return Markup("").join(lines)


def _mark(figure: Figure, kind: str, y: int) -> Markup:
    parts = []
    if figure.bounds is not None:
        low, high = figure.bounds
        parts.append(
            Markup('<line class="spread {}" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(
                kind, _x(low), _x(high), y, y
            )
        )
    parts.append(
        Markup('<circle class="dot {}" cx="{}" cy="{}" r="5"/>').format(kind, _x(figure.value), y)
    )
    return Markup("").join(parts)
