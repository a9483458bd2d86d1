"""A finding in words: its lens, and the plain property that goes with its score most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from d2cp.scan.batched import Floats, Ints
from d2cp.scan.changes import WHOLE_PICTURE
from d2cp.scan.lenses.coloured import HUES

# Lens → how it is said, and the properties that may follow it.
TITLES = {
    "repeated detail": "repeated detail",
    "coloured detail": "coloured detail",
    "local pattern": "local pattern",
    "texture": "texture",
    "colour": "overall colour",
    "tint": "tint of the light",
    "layout": "layout",
    "saturation": "strength of the colours",
    "sharpness": "sharpness and detail",
    "border": "border or corner",
    "file": "file property",
}
PROPERTIES: dict[str, tuple[str, ...]] = {
    "repeated detail": (),
    "coloured detail": tuple(f"{hue} part" for hue in HUES),
    "local pattern": (),
    "texture": ("rough", "bright"),
    "colour": ("red", "green", "blue", "bright", "saturated", "contrasty"),
    "tint": ("red", "green", "blue"),
    "layout": ("upper half bright", "left half bright", "centre bright", "blue", "bright"),
    "saturation": ("saturated",),
    "sharpness": ("sharp", "rough"),
    "border": ("edge bright", "edge rough"),
}


def _a(word: str) -> str:
    return "an" if word[0] in "aeiou" else "a"


OPPOSITES = {
    "red": ("redder", "less red"),
    "green": ("greener", "less green"),
    "blue": ("bluer", "less blue"),
    "bright": ("brighter", "darker"),
    "saturated": ("more colourful", "greyer"),
    "contrasty": ("more contrast", "flatter"),
    "rough": ("more detail", "smoother"),
    "sharp": ("sharper", "blurrier"),
    "upper half bright": ("brighter above", "brighter below"),
    "left half bright": ("brighter on the left", "brighter on the right"),
    "centre bright": ("brighter in the middle", "brighter around the middle"),
    "edge bright": ("brighter at the edge", "darker at the edge"),
    **{f"{hue} part": (f"{_a(hue)} {hue} part", f"no {hue} part") for hue in HUES},
    "edge rough": ("more detail at the edge", "plainer at the edge"),
    "width": ("wider images", "narrower images"),
    "height": ("higher images", "lower images"),
    "aspect ratio": ("wider shape", "taller shape"),
    "bytes per pixel": ("more bytes a pixel", "fewer bytes a pixel"),
    "compression quality": ("less compressed", "more compressed"),
}
LEAST = 0.15
"""Correlation below which a property does not describe a finding."""

CARRIED = 0.25
"""Share of transplants that go over, control taken off, from which a value is said to carry it."""


def describe(
    lens: str, score: Floats, y: Ints, properties: Mapping[str, Floats]
) -> tuple[str, tuple[str, ...]]:
    """(name, names of values 0 and 1, or nothing where no property tells them apart). Correlations
    are taken within the classes, so that a name says what the score follows and not what the class
    looks like."""
    title = TITLES.get(lens, lens)
    known = PROPERTIES.get(lens, tuple(properties) if lens not in TITLES else ())
    strength = {name: within(score, properties[name], y) for name in known if name in properties}
    best = max(strength, key=lambda name: abs(strength[name]), default=None)
    if best is None or abs(strength[best]) < LEAST:
        return title, ()
    more, less = OPPOSITES.get(best, (f"more {best}", f"less {best}"))
    high, low = (more, less) if strength[best] > 0 else (less, more)
    return f"{title}: {high}", (low, high)


def describe_entry(
    lens: str, score: Floats, entries: Mapping[str, Floats]
) -> tuple[str, tuple[str, ...]]:
    """The same for a lens that does not look at pixels: the entry of the file or of a column that
    goes with its score most, over all classes. An entry cannot look like a class."""
    nothing = np.zeros(len(score), np.int64)
    strength = {name: within(score, values, nothing) for name, values in entries.items()}
    best = max(strength, key=lambda name: abs(strength[name]), default=None)
    if best is None or abs(strength[best]) < LEAST:
        return TITLES.get(lens, lens), ()
    said = best.removeprefix(f"{lens.removeprefix('column ')} ")  # column site: A, not site A
    if best in OPPOSITES:
        more, less = OPPOSITES[best]
    elif np.isin(entries[best], (0, 1)).all():
        more, less = said, f"not {said}"
    else:
        more, less = f"high {said}", f"low {said}"
    high, low = (more, less) if strength[best] > 0 else (less, more)
    return f"{lens}: {high}", (low, high)


def with_place(lens: str, name: str, place: str) -> str:
    """The name with where it is: its windows' place, or what lies around the middle."""
    if lens in WHOLE_PICTURE:
        return name.replace(TITLES[lens], f"{TITLES[lens]} of the surroundings", 1)
    return f"{name}, {place}" if place else name


def value_names(
    lens: str, named: Sequence[str], classes: Sequence[str], carried: int | None
) -> tuple[str, ...]:
    """What the values are called: by a property (`named`), by whether the cue is there where one
    value carries it (`carried`), else after the class that the value speaks for."""
    if len(classes) == 2 and named:
        return tuple(named)
    title = TITLES.get(lens, lens)
    if len(classes) == 2 and carried is not None:
        return tuple(f"{'with' if v == carried else 'without'} the {title}" for v in (0, 1))
    return tuple(f"{title} of {label}" for label in classes)


def within(a: Floats, b: Floats, y: Ints) -> float:
    """Correlation once each class's mean is taken out."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    for c in np.unique(y):
        a[y == c] -= a[y == c].mean()
        b[y == c] -= b[y == c].mean()
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum() + 1e-12))
