"""What is right and wrong with a data set, as a report that prints nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from d2cp.data.copies import SIDE, across_splits, thumbnail
from d2cp.data.digests import SMALL, ordered_map, present_rows
from d2cp.data.images import UnreadableError, decode
from d2cp.data.packed_digests import RowDigests, digest_bytes
from d2cp.data.source import ColouredSource, EncodedSource
from d2cp.data.store import quarantine
from d2cp.data.table import SPLIT_NAMES, Counts, Table


@dataclass(frozen=True, kw_only=True)
class Duplicate:
    """One image content that stands in several splits, or under several labels."""

    ids: tuple[str, ...]
    splits: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Width and height of the images as they are seen, in pixels."""

    smallest: tuple[int, int]
    median: tuple[int, int]
    largest: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """`problems` are what a user should act on; `notes` are good to know."""

    name: str
    format: str
    rows: int
    class_names: tuple[str, ...]
    attribute_names: tuple[str, ...] | None
    counts: Counts
    expected: Counts | None
    images: str  # present, absent, or partly
    decoded: bool
    unreadable: tuple[dict[str, str], ...]
    unreadable_by_class: dict[str, int]
    duplicates: tuple[Duplicate, ...]
    copies: tuple[Duplicate, ...]  # alike to the eye, other bytes, in two splits
    sizes: Sizes | None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def counts_match(self) -> bool | None:
        """Found equals expected in every split that was published; None for an unknown set."""
        if self.expected is None:
            return None
        return all(self.counts.get(split) == cells for split, cells in self.expected.items())

    @property
    def clean(self) -> bool:
        return not self.problems


def check_table(
    table: Table,
    *,
    decode_images: bool = True,
    step: Callable[[], None] = lambda: None,
) -> CheckReport:
    """Every image is read (and decoded, unless told not to); `step` is called once a file."""
    seen = _inspect(table, decode_images, step)
    bad = seen.bad
    absent = [row for row, reason in bad.items() if reason == "missing file"]
    images = "present"
    if absent:
        images = "absent" if len(absent) == len(table) else "partly"
    listed = () if images == "absent" else tuple(quarantine(table, bad))
    by_class = dict(sorted(Counter(record["class"] for record in listed).items()))
    duplicates, same_split = _duplicates(table, seen.digests)
    report = CheckReport(
        name=table.name,
        format=table.format,
        rows=len(table),
        class_names=table.class_names,
        attribute_names=table.attribute_names,
        counts=table.counts(),
        expected=table.expected_counts,
        images=images,
        decoded=decode_images and images != "absent",
        unreadable=listed,
        unreadable_by_class=by_class,
        duplicates=duplicates,
        copies=_copies(table, seen),
        sizes=_sizes(seen.sizes),
    )
    notes = list(table.notes)
    if same_split:
        notes.append(f"{same_split} images repeat another one of their split and class")
    return _with_findings(report, list(table.warnings), notes)


def _with_findings(report: CheckReport, problems: list[str], notes: list[str]) -> CheckReport:
    if report.counts_match is False:
        problems.append("the group counts are not the published ones")
    if report.images == "absent":
        problems.append("images absent: the table can be read, but not one of its files is there")
    elif report.unreadable:
        listed = ", ".join(f"{name}: {n}" for name, n in report.unreadable_by_class.items())
        problems.append(f"{len(report.unreadable)} unreadable images ({listed})")
    if leaks := [d for d in report.duplicates if len(d.splits) > 1]:
        problems.append(f"{len(leaks)} images stand in more than one split")
    if report.copies:
        problems.append(
            f"{len(report.copies)} images of one split are copies of images of another one, in "
            "another size or encoding"
        )
    if torn := [d for d in report.duplicates if len(d.classes) > 1]:
        problems.append(f"{len(torn)} images stand under more than one label")
    return replace(report, problems=tuple(problems), notes=tuple(notes))


@dataclass(kw_only=True)
class _Seen:
    """What was seen of each row, with nothing in the place of what could not be read."""

    digests: RowDigests
    bad: dict[int, str]
    sizes: NDArray[np.int64]  # [N, 2], 0 where there is none
    thumbnails: NDArray[np.uint8]  # [N, 16, 16, 3], or none at all

    @classmethod
    def of(cls, rows: int, *, thumbnails: bool) -> _Seen:
        """Nothing yet."""
        return cls(
            digests=RowDigests.of(rows),
            bad={},
            sizes=np.zeros((rows, 2), dtype=np.int64),
            thumbnails=np.zeros((rows if thumbnails else 0, SIDE, SIDE, 3), dtype=np.uint8),
        )


def _inspect(table: Table, decode_images: bool, step: Callable[[], None]) -> _Seen:
    """Every row looked at once. Files that are not there cost no thread."""
    source = table.source
    if isinstance(source, ColouredSource):
        seen = _Seen.of(len(table), thumbnails=False)
        for row in range(len(source)):
            seen.digests[row] = source.digest(row)
        seen.sizes[:] = source.side
        return seen
    if not isinstance(source, EncodedSource):
        raise TypeError(f"no way to read images from {type(source).__name__}")
    rows, bad = present_rows(source)
    seen = replace(_Seen.of(len(table), thumbnails=decode_images), bad=bad)

    def one(row: int) -> str:
        try:
            data = source.read(row)
            seen.digests[row] = digest_bytes(data)
            if decode_images:
                image = decode(data)
                seen.sizes[row], seen.thumbnails[row] = image.size, thumbnail(image)
        except UnreadableError as error:
            return str(error)
        return ""

    for row, reason in zip(rows, ordered_map(one, rows, SMALL), strict=True):
        if reason:
            bad[row] = reason
        step()
    return seen


def _sizes(seen: NDArray[np.int64]) -> Sizes | None:
    sizes = seen[seen[:, 0] > 0]
    if not len(sizes):
        return None
    sizes = sizes[np.lexsort((sizes[:, 1], sizes[:, 0], sizes.prod(axis=1)))]
    smallest, median, largest = (
        (int(width), int(height)) for width, height in sizes[[0, (len(sizes) - 1) // 2, -1]]
    )
    return Sizes(smallest=smallest, median=median, largest=largest)


def _copies(table: Table, seen: _Seen) -> tuple[Duplicate, ...]:
    """Validation and test images that copy training ones, and test ones that copy validation."""
    if not len(seen.thumbnails):
        return ()
    rows = np.flatnonzero(seen.sizes[:, 0] > 0).astype(np.int64)
    return tuple(
        Duplicate(
            ids=(str(table.ids[known]), str(table.ids[asked])),
            splits=(SPLIT_NAMES[table.split[known]], SPLIT_NAMES[table.split[asked]]),
            classes=tuple(
                table.class_names[y] for y in sorted({int(table.y[known]), int(table.y[asked])})
            ),
        )
        for asked, known in across_splits(seen.thumbnails[rows], rows, table)
        if seen.digests[asked] != seen.digests[known]  # equal bytes are told as such
    )


def _duplicates(table: Table, digests: RowDigests) -> tuple[tuple[Duplicate, ...], int]:
    """Contents met in two splits or under two labels, and how many plain repetitions there are."""
    found, plain = [], 0
    for rows in digests.repeated():
        # The balanced test set is the test set in other colours: equal pixels are meant there.
        splits = sorted({min(int(table.split[row]), 2) for row in rows})
        classes = sorted({int(table.y[row]) for row in rows})
        if len(splits) > 1 or len(classes) > 1:
            found.append(
                Duplicate(
                    ids=tuple(str(table.ids[row]) for row in rows),
                    splits=tuple(SPLIT_NAMES[code] for code in splits),
                    classes=tuple(table.class_names[code] for code in classes),
                )
            )
        else:
            plain += len(rows) - len({int(table.split[row]) for row in rows})
    return tuple(found), plain
