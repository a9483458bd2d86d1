"""From a table to its images at working size."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from d2cp.core.memory import hand_back
from d2cp.data.cache import Entry, FirstLook, default_cache_dir, open_entry
from d2cp.data.digests import row_digests
from d2cp.data.images import DECODER_VERSION, RESAMPLING, decode, to_square
from d2cp.data.packed_digests import RowDigests, digest_bytes, packed, places_of, unpacked
from d2cp.data.source import ColouredSource, EncodedSource
from d2cp.data.store import ArrayStore, ImageStore, MemmapStore, quarantine, usable
from d2cp.data.table import Table
from d2cp.errors import DataError

RESIZES = ("cover", "stretch")


def open_images(
    table: Table,
    size: int,
    cache_dir: Path | str | None = None,
    resize: str = "cover",
    *,
    quiet: bool = False,
) -> ImageStore:
    """The table's images as size × size squares, decoded on first use and mapped afterwards.

    resize "cover": short side to `size` (antialiased bilinear), then centre crop; "stretch": both
    sides to `size`. Rows that cannot be decoded are in `store.bad`; see `load_images`.
    """
    if resize not in RESIZES or size < 2:
        raise ValueError(f"resize={resize!r}, size={size}: want {RESIZES} and a size of 2 or more")
    directory = default_cache_dir() if cache_dir is None else Path(cache_dir)
    source = table.source
    if isinstance(source, ColouredSource):
        if size == source.side:
            return ArrayStore(source)
        return _open_coloured(source, size, resize, directory, quiet)
    if not isinstance(source, EncodedSource):
        raise TypeError(f"no way to read images from {type(source).__name__}")
    store = _open_encoded(table, source, size, resize, directory, quiet)
    hand_back()
    return store


def load_images(
    table: Table,
    size: int,
    cache_dir: Path | str | None = None,
    resize: str = "cover",
    *,
    quiet: bool = False,
) -> tuple[Table, ImageStore]:
    """The usable rows and their images; the table's warnings tell what was left out."""
    store = open_images(table, size, cache_dir, resize, quiet=quiet)
    if not store.bad:
        return table, store
    left = usable(table, store)
    per_class: dict[str, int] = {}
    for record in quarantine(table, store.bad):
        per_class[record["class"]] = per_class.get(record["class"], 0) + 1
    listed = ", ".join(f"{name}: {n}" for name, n in sorted(per_class.items()))
    warning = f"{len(store.bad)} unreadable images left out ({listed}); see `d2cp check`"
    return replace(left, warnings=(*left.warnings, warning)), store.subset(store.good_rows())


def _open_encoded(
    table: Table, source: EncodedSource, size: int, resize: str, cache_dir: Path, quiet: bool
) -> ImageStore:
    settings = _settings(size, resize, source.centre_crop)

    def name(row: int) -> str:
        return str(table.ids[row])

    def square(data: bytes) -> NDArray[np.uint8]:
        return to_square(decode(data), size, resize=resize, centre_crop=source.centre_crop)

    first = FirstLook(source.location, source.read, square, name, settings, cache_dir, quiet)
    digests, bad = row_digests(source, cache_dir, first.digests)
    if len(bad) == len(table):
        raise DataError(
            f"none of the {len(table)} images of {table.name!r} can be read "
            f"({table.ids[0]}: {bad[0] if bad else 'no rows'})",
            expected=f"image files below {source.location}",
            remedy="put the images in place or pass their folder; `d2cp check` lists what is wrong",
        )

    def render(row: int) -> NDArray[np.uint8]:
        data = source.read(row)
        if digest_bytes(data) != digests[row]:
            raise DataError(
                f"{name(row)} changed while it was being read",
                remedy="start again when nothing writes to the data set",
            )
        return square(data)

    entry = open_entry(digests, render, name, settings, cache_dir, quiet=quiet, fresh=first.built)
    for row in _rows_of(entry.bad, digests):
        bad[row] = entry.bad[unpacked(digests.values[row])]
    if len(bad) == len(table):
        raise DataError(
            f"none of the {len(table)} images of {table.name!r} can be decoded",
            expected="JPEG, PNG, GIF, BMP, TIFF, WebP or PNM files",
            remedy="`d2cp check` lists the reasons",
        )
    return _store(entry, digests, size, bad)


def _open_coloured(
    source: ColouredSource, size: int, resize: str, cache_dir: Path, quiet: bool
) -> ImageStore:
    digests = RowDigests.of(len(source))
    for row in range(len(source)):
        digests[row] = source.digest(row)

    def render(row: int) -> NDArray[np.uint8]:
        pixels = source.pixels(np.array([row], dtype=np.int64))[0]
        return to_square(Image.fromarray(pixels), size, resize=resize)

    settings = {**_settings(size, resize, None), "kind": "coloured"}
    entry = open_entry(digests, render, str, settings, cache_dir, quiet=quiet)
    return _store(entry, digests, size, {})


def _rows_of(wanted: Collection[bytes], digests: RowDigests) -> list[int]:
    """The rows that have one of these digests."""
    found = places_of(digests.values, packed(b"".join(wanted))) >= 0
    rows: list[int] = np.flatnonzero(found & digests.there).tolist()
    return rows


def _settings(size: int, resize: str, centre_crop: int | None) -> dict[str, Any]:
    return {
        "size": size,
        "resize": resize,
        "centre_crop": centre_crop,
        "resampling": RESAMPLING.name,
        "decoder": DECODER_VERSION,
    }


def _store(entry: Entry, digests: RowDigests, size: int, bad: dict[int, str]) -> MemmapStore:
    slots = places_of(digests.values, entry.digests)
    slots[~digests.there] = -1
    slots[list(bad)] = -1
    return MemmapStore(entry.pixels, size, slots, bad, entry.key)
