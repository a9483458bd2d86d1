"""Properties of the file itself: size, shape, format, compression, camera.

Only the header is parsed; pixels are not decoded here.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from d2cp.data.images import FORMATS
from d2cp.scan.batched import Floats

MAX_VALUES = 20
"""Formats, cameras and the like that get a feature each; the rest share one."""
NUMBERS = ("width", "height", "aspect ratio", "bytes per pixel", "compression quality")
_MAKE, _MODEL, _SOFTWARE = 271, 272, 305
# Mean of the luminance table that libjpeg uses at quality 50.
_STANDARD_MEAN = 57.625


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`numbers` in the order of NUMBERS, and words by what they are about."""

    numbers: tuple[float, ...]
    words: dict[str, str]


def read_facts(data: bytes) -> FileFacts:
    """What the header says; a header that cannot be read says nothing."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            width, height = image.size
            quality = _quality(getattr(image, "quantization", None))
            exif = image.getexif()
            camera = " ".join(str(exif.get(tag, "")).strip("\0 ") for tag in (_MAKE, _MODEL))
            words = {
                "format": str(image.format),
                "colour mode": image.mode,
                "subsampling": str(image.info.get("jpeg_subsampling", _sampling(image))),
                "progressive": str(bool(image.info.get("progressive"))),
                "camera": camera.strip() or "none",
                "software": str(exif.get(_SOFTWARE, "")).strip("\0 ") or "none",
                "resolution": str(image.info.get("dpi", "none")),
            }
    except Exception:  # hostile bytes meet many exception types; the pixels are judged elsewhere
        return FileFacts((0.0,) * len(NUMBERS), {})
    density = len(data) / max(1, width * height)
    numbers = (
        math.log(max(1, width)),
        math.log(max(1, height)),
        math.log(max(1, width) / max(1, height)),
        math.log(density + 1e-6),
        quality,
    )
    return FileFacts(numbers, words)


def read_all(read: Callable[[int], bytes], n: int) -> list[FileFacts]:
    """The facts of n files; files with the same words share them: there are few kinds."""
    shared: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    found = []
    for row in range(n):
        facts = read_facts(read(row))
        words = shared.setdefault(tuple(facts.words.items()), facts.words)
        found.append(FileFacts(facts.numbers, words))
    return found


def _quality(tables: object) -> float:
    """Quality from 1 to 100 as libjpeg counts it, from the mean of the first quantisation table;
    101 where nothing is quantised."""
    if not isinstance(tables, dict) or not tables:
        return 101.0
    mean = float(np.mean(next(iter(tables.values()))))
    scale = 100 * mean / _STANDARD_MEAN
    return float(np.clip(100 - scale / 2 if scale <= 100 else 5000 / scale, 1, 100))


def _sampling(image: Image.Image) -> str:
    layers = getattr(image, "layer", None)
    return str([tuple(layer[1:3]) for layer in layers]) if layers else "none"


def facts_matrix(facts: Sequence[FileFacts]) -> tuple[Floats, tuple[str, ...]]:
    """Features [N, D] and their names; what never varies gives no feature."""
    columns = [np.array([f.numbers[i] for f in facts]) for i in range(len(NUMBERS))]
    names = list(NUMBERS)
    for about in sorted({key for f in facts for key in f.words}):
        values = [f.words.get(about, "") for f in facts]
        new, new_names = one_hot(values, about)
        columns += new
        names += new_names
    kept = [i for i, column in enumerate(columns) if np.ptp(column) > 1e-9]
    matrix = np.stack([columns[i] for i in kept], axis=1) if kept else np.zeros((len(facts), 0))
    return matrix.astype(np.float32), tuple(names[i] for i in kept)


def one_hot(values: Sequence[str], about: str) -> tuple[list[Floats], list[str]]:
    """A column for each frequent value, and one for all others together."""
    ranked = sorted(Counter(values).items(), key=lambda item: (-item[1], item[0]))
    frequent = [value for value, _ in ranked[:MAX_VALUES]]
    array = np.array(values)
    columns = [(array == value).astype(np.float32) for value in frequent]
    names = [f"{about} {value}" for value in frequent]
    if len(ranked) > MAX_VALUES:
        columns.append((~np.isin(array, frequent)).astype(np.float32))
        names.append(f"{about} other")
    return columns, names
