"""A table of figures as a chart: rows with dots and deviations, or a curve for a sweep."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from d2cp.reproduce.chart import FAINT, OURS, RULE, THEIRS, Chart, Diamond, Dot, Line, Words
from d2cp.reproduce.chart import text_width as width_of

Figure = Mapping[str, Any]
STEP, TOP, PLOT, RIGHT = 30, 64, 420, 150


def chart(title: str, figures: Sequence[Figure], metric: str, sweep: str = "") -> Chart:
    """`figures` are one metric of one data set and split, in the order of the rows."""
    drawn = _curve if sweep and len(figures) > 2 else _rows
    return drawn(title, figures, metric, sweep)


def _rows(title: str, figures: Sequence[Figure], metric: str, sweep: str) -> Chart:
    """One line a row: ours a dot with ± one deviation, the paper's a diamond."""
    left = 24 + max(width_of(str(f["name"])) for f in figures) + 14
    bottom = TOP + STEP * len(figures)
    made = Chart(int(left + PLOT + RIGHT), bottom + 46, title)
    _head(made, title, metric, figures)

    def x(share: float) -> float:
        return left + PLOT * min(1.0, max(0.0, share))

    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        made.add(Line(((x(share), TOP - 6), (x(share), bottom)), RULE))
        made.add(Words(x(share), bottom + 18, f"{share:.0%}", 12, FAINT, "middle"))
    for number, f in enumerate(figures):
        y = TOP + STEP * (number + 0.5)
        made.add(Words(left - 12, y + 4, str(f["name"]), anchor="end"))
        if f["std"] is not None:
            ends = (x(f["mean"] - f["std"]), y), (x(f["mean"] + f["std"]), y)
            made.add(Line(ends, OURS, 2.5))
        made.add(Dot(x(f["mean"]), y, OURS))
        if f["paper"] is not None:
            made.add(Diamond(x(f["paper"]), y, THEIRS))
        made.add(Words(left + PLOT + 14, y + 4, _spoken(f)))
    return made


def _curve(title: str, figures: Sequence[Figure], metric: str, sweep: str) -> Chart:
    """The figure over the values of the sweep, on a scale that shows the differences."""
    made = Chart(620, 360, title)
    _head(made, title, metric, figures)
    left, top, wide, tall = 70.0, 64.0, 510.0, 228.0
    values = [float(f["row"]) for f in figures]
    reach = [
        bound
        for f in figures
        for centre, spread in ((f["mean"], f["std"]), (f["paper"], f["paper_std"]))
        if centre is not None
        for bound in (centre - (spread or 0), centre + (spread or 0))
    ]
    ticks = round_ticks(max(0.0, min(reach)), min(1.0, max(reach)))
    low, high = ticks[0] / 100, ticks[-1] / 100
    beside = 3.0 if any(f["paper"] is not None for f in figures) else 0.0

    def place(value: float, share: float) -> tuple[float, float]:
        along = (value - min(values)) / (max(values) - min(values))
        up = (min(high, max(low, share)) - low) / (high - low)
        return left + 20 + (wide - 40) * along, top + tall * (1 - up)

    for tick in ticks:
        y = place(values[0], tick / 100)[1]
        made.add(Line(((left, y), (left + wide, y)), RULE))
        made.add(Words(left - 10, y + 4, f"{tick}%", 12, FAINT, "end"))
    for value in values:
        made.add(Words(place(value, low)[0], top + tall + 20, f"{value:g}", 12, FAINT, "middle"))
    made.add(Words(left + wide / 2, top + tall + 44, sweep, anchor="middle"))
    for key, colour, aside in (("mean", OURS, -beside), ("paper", THEIRS, beside)):
        known = [f for f in figures if f[key] is not None]
        points = [place(float(f["row"]), f[key]) for f in known]
        points = [(x + aside, y) for x, y in points]  # so that deviations do not hide each other
        if len(known) > 1:
            made.add(Line(tuple(points), colour, 1.5))
        for f, (x, y) in zip(known, points, strict=True):
            if spread := f["std" if key == "mean" else "paper_std"]:
                ends = (place(0, f[key] - spread)[1], place(0, f[key] + spread)[1])
                made.add(Line(((x, ends[0]), (x, ends[1])), colour, 1.5))
            made.add(Dot(x, y, colour) if key == "mean" else Diamond(x, y, colour))
    return made


def round_ticks(low: float, high: float) -> list[int]:
    """Percents around two shares, four to seven of them where that can be: 1, 2, 5, 10 or 20
    apart."""
    for step in (1, 2, 5, 10, 20):
        first, last = math.floor(100 * low / step), math.ceil(100 * high / step)
        if last - first <= 6:
            break
    return [step * k for k in range(first, max(last, first + 1) + 1)]


def _head(made: Chart, title: str, metric: str, figures: Sequence[Figure]) -> None:
    made.add(Words(24, 26, title, 16))
    seeds = max(len(f["by_seed"]) for f in figures)
    ours = f"ours, {metric}" + (f", ± deviation over {seeds} seeds" if seeds > 1 else ", one seed")
    made.add(Dot(30, 44, OURS), Words(42, 48, ours, 12, FAINT))
    if any(f["paper"] is not None for f in figures):
        x = 42 + width_of(ours, 12) + 24
        made.add(Diamond(x, 44, THEIRS), Words(x + 12, 48, "the paper's", 12, FAINT))


def _spoken(f: Figure) -> str:
    ours = f"{100 * f['mean']:.1f}" + (f" ± {100 * f['std']:.1f}" if f["std"] is not None else "")
    return ours + ("" if f["paper"] is None else f"  ({100 * f['paper']:.1f})")
