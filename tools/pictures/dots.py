"""Accuracy by group before and after, as SVG."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from d2cp.core.files import read_json
from d2cp.core.run_directory import RunDirectory
from tools.pictures.theme import Theme

WIDTH, LEFT, RIGHT, TOP, STEP = 640, 168, 30, 46, 44


def dots_svg(run: RunDirectory, theme: Theme) -> str:
    """A ring before (plain training), a dot after (D2CP), with the worst group last."""
    results = read_json(run.artifact("evaluate") / "results.json")
    split = results[-1]["split"]
    before, after = (
        next(r for r in results if r["method"] == method and r["split"] == split)
        for method in ("erm", "d2cp")
    )
    names = {key: group["name"] for key, group in after["groups"].items()}
    rows = [
        (name, before["groups"][key]["accuracy"], after["groups"][key]["accuracy"])
        for key, name in names.items()
    ]
    rows.append(("worst group", before["worst_group"], after["worst_group"]))
    height = TOP + STEP * len(rows) + 34
    parts = [_legend(theme), *(_grid(share, height, theme) for share in (0, 25, 50, 75, 100))]
    for number, row in enumerate(rows):
        parts.append(_row(row, TOP + STEP * number + STEP // 2, theme, number == len(rows) - 1))
    spoken = "; ".join(f"{n}: {100 * b:.0f}% before, {100 * a:.0f}% after" for n, b, a in rows)
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img" '
            'font-family="system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif" '
            'font-size="18"><title>{}</title>{}</svg>\n'
        ).format(WIDTH, height, spoken, Markup("").join(parts))
    )


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * share


def _legend(theme: Theme) -> Markup:
    return Markup(
        '<circle cx="{0}" cy="16" r="7" fill="none" stroke="{2}" stroke-width="3"/>'
        '<text x="{1}" y="22" fill="{3}">plain training</text>'
        '<circle cx="{4}" cy="16" r="8" fill="{6}"/><text x="{5}" y="22" fill="{3}">D2CP</text>'
    ).format(LEFT + 8, LEFT + 22, theme.before, theme.ink, LEFT + 170, LEFT + 184, theme.after)


def _grid(share: int, height: int, theme: Theme) -> Markup:
    x = _x(share / 100)
    return Markup(
        '<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}" stroke="{3}"/>'
        '<text x="{0:.1f}" y="{4}" fill="{5}" text-anchor="middle" font-size="16">{6}%</text>'
    ).format(x, TOP, height - 30, theme.line, height - 8, theme.quiet, share)


def _row(row: tuple[Any, float, float], y: int, theme: Theme, strong: bool) -> Markup:
    name, before, after = row
    return Markup(
        '<text x="{}" y="{}" fill="{}" text-anchor="end"{}>{}</text>'
        '<line x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}" stroke="{}" stroke-width="2"/>'
        '<circle cx="{:.1f}" cy="{}" r="7" fill="none" stroke="{}" stroke-width="3"/>'
        '<circle cx="{:.1f}" cy="{}" r="8" fill="{}"/>'
    ).format(
        *(LEFT - 18, y + 6, theme.ink, Markup(' font-weight="700"' if strong else ""), name),
        *(_x(before), _x(after), y, y, theme.quiet),
        *(_x(before), y, theme.before),
        *(_x(after), y, theme.after),
    )
