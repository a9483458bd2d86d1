"""What is right and wrong with a data set, as a report that prints nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from d2cp.data.digests import digest_bytes, ordered_map, row_stamps
from d2cp.data.images import UnreadableError, decode
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
    digests, bad = _inspect(table, decode_images, step)
    absent = [row for row, reason in bad.items() if reason == "missing file"]
    images = "present"
    if absent:
        images = "absent" if len(absent) == len(table) else "partly"
    listed = () if images == "absent" else tuple(quarantine(table, bad))
    by_class = dict(sorted(Counter(record["class"] for record in listed).items()))
    duplicates, same_split = _duplicates(table, digests)
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
    if torn := [d for d in report.duplicates if len(d.classes) > 1]:
        problems.append(f"{len(torn)} images stand under more than one label")
    return replace(report, problems=tuple(problems), notes=tuple(notes))


def _inspect(
    table: Table, decode_images: bool, step: Callable[[], None]
) -> tuple[list[bytes | None], dict[int, str]]:
    """Digest of each row, and why rows are unreadable. Files that are not there cost no thread."""
    source = table.source
    if isinstance(source, ColouredSource):
        return [source.digest(row) for row in range(len(source))], {}
    if not isinstance(source, EncodedSource):
        raise TypeError(f"no way to read images from {type(source).__name__}")
    stamps, bad = row_stamps(source)
    digests: list[bytes | None] = [None] * len(table)

    def one(row: int) -> tuple[bytes | None, str]:
        digest = None
        try:
            data = source.read(row)
            digest = digest_bytes(data)
            if decode_images:
                decode(data)
        except UnreadableError as error:
            return digest, str(error)
        return digest, ""

    rows = list(stamps)
    for row, (digest, reason) in zip(rows, ordered_map(one, rows), strict=True):
        digests[row] = digest
        if reason:
            bad[row] = reason
        step()
    return digests, bad


def _duplicates(table: Table, digests: list[bytes | None]) -> tuple[tuple[Duplicate, ...], int]:
    """Contents met in two splits or under two labels, and how many plain repetitions there are."""
    rows_of: dict[bytes, list[int]] = {}
    for row, digest in enumerate(digests):
        if digest is not None:
            rows_of.setdefault(digest, []).append(row)
    found, plain = [], 0
    for rows in rows_of.values():
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
