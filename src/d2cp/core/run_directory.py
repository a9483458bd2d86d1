"""A run directory: who works on it, what each stage wrote, and whether that is whole and current.

RUN/run.json          config, data set, version        RUN/environment.json   the machine
RUN/metrics.jsonl     one line a logged step           RUN/<stage>/           one artifact each
RUN/<stage>/manifest.json   inputs, seconds, SHA-256 of every file
"""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar, cast

from d2cp.core.files import sha256, sweep, whole_folder, write_json
from d2cp.core.locks import HeldError, held_in
from d2cp.core.records import DataRecord, FileEntry, Manifest, RunRecord
from d2cp.core.typed_json import read_typed
from d2cp.errors import RunError

SCHEMA = 1
SWEPT = ("checkpoints", "cells", "search")  # `seeds` are runs with locks of their own
PLACE = ("path", "format", "columns", "images")  # keys that say where the data set was found

T = TypeVar("T")


class RunDirectory:
    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @classmethod
    def open(cls, path: Path | str) -> RunDirectory:
        """An existing run; an error that says so where there is none."""
        run = cls(path)
        if not (run.path / "run.json").is_file():
            raise RunError(
                f"{run.path} is not a run directory (no run.json in it)",
                expected="a directory made by d2cp run, discover, compare or demo",
                remedy=f"d2cp run DATA --out {run.path}",
            )
        return run

    @contextmanager
    def locked(self, *, wait: bool = False, clean: bool = True) -> Iterator[None]:
        """Hold the run for this process: a second one gets an error, never a mixed result, or,
        with `wait`, its turn. `clean` removes what killed writers left."""
        with ExitStack() as stack:
            try:
                stack.enter_context(held_in(self.path, ".lock", wait=wait))
            except HeldError as error:
                raise RunError(
                    f"{self.path} is in use by process {error}",
                    expected="one process on a run directory",
                    remedy="wait for it, or choose another --out",
                ) from None
            if clean:
                sweep(self.path)
                for name in SWEPT:
                    sweep(self.path / name, below=True)
            yield

    def start(
        self,
        description: dict[str, Any],
        *,
        force: bool = False,
        settled: Collection[str] | None = None,
    ) -> None:
        """Record what this run is; refuse to go on with a run that is something else.

        Where the data set lies and how it is read may change; its fingerprint may not. Of the
        configuration, only what has taken effect binds: the dotted names in `settled`, or all of
        it. With `force` those keep their values in the record until `record` is called for them.
        """
        path = self.path / "run.json"
        if path.exists():
            before = self.description
            old, new = before.get("config"), description.get("config")
            if settled is not None and isinstance(old, dict) and isinstance(new, dict):
                kept = copy.deepcopy(new)
                for name in settled:
                    _take(kept, old, name)
                description = {**description, "config": kept if force else new}
                before["config"] = kept if kept == new else {**kept, "preset": old.get("preset")}
            if not force:
                self._require_same(before, description)
            if before == {**before, **description} and old == description.get("config"):
                return
        write_json(path, {"schema": SCHEMA, **description})

    def _require_same(self, before: dict[str, Any], description: dict[str, Any]) -> None:
        if strange := description.keys() - before.keys():
            raise RunError(
                f"{self.path} was made by another command: it records no {min(strange)}",
                expected="a new folder, or one that the same command made",
                remedy="choose another --out; or, if the same command did make it and the record "
                f"is damaged, delete {self.path / 'run.json'}: stages are kept",
            )
        # Settings first: other settings can also be what makes the data look different.
        for key in sorted(description, key=lambda name: name != "config"):
            value = description[key]
            if _placeless(before.get(key)) != _placeless(value):
                raise RunError(
                    f"{self.path} was started with another {key}: "
                    + first_difference(before.get(key), value, key),
                    expected="the settings the run was started with",
                    remedy="use the same settings, another --out, or --force to redo "
                    "the stages that change",
                )

    def record(self, names: Collection[str], config: dict[str, Any]) -> None:
        """These settings have taken effect."""
        if not (self.path / "run.json").is_file():
            return
        description = self.description
        recorded = copy.deepcopy(description.get("config", {}))
        for name in names:
            _take(recorded, config, name)
        if recorded != description.get("config"):
            write_json(self.path / "run.json", {**description, "config": recorded})

    @property
    def description(self) -> dict[str, Any]:
        path = self.path / "run.json"
        return cast(dict[str, Any], read_typed(path, RunRecord, remedy=self._anew()))

    @property
    def data(self) -> DataRecord:
        """Which data set the run is about, and where it was found."""
        found = self.description.get("data")
        if found is None:
            raise RunError(
                f"{self.path / 'run.json'} names no data set",
                expected="the file as it was written",
                remedy=self._anew(),
            )
        return cast(DataRecord, found)

    def has(self, stage: str) -> bool:
        return (self.path / stage / "manifest.json").is_file()

    def manifest(self, stage: str) -> Manifest:
        path = self.path / stage / "manifest.json"
        found = read_typed(path, Manifest, remedy=self._again(stage))
        for name in found["files"]:
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise self._damaged(stage, f"{path} names a file outside of its folder: {name!r}")
        return found

    def is_current(self, stage: str, inputs: str) -> bool:
        """Whether the stage's artifact was made from these inputs and is whole."""
        if not self.has(stage) or self.manifest(stage)["inputs"] != inputs:
            return False
        return not self.damage(stage)

    def damage(self, stage: str, only: str | None = None) -> str:
        """What is wrong with the stage's files, or with one of them, or an empty string."""
        files = self.manifest(stage)["files"]
        if only is not None and only not in files:
            return f"{self.path / stage / only} is not a file that the stage wrote"
        for name, entry in files.items() if only is None else [(only, files[only])]:
            try:
                found = _difference(self.path / stage / name, self.path / stage, entry)
            except OSError as error:  # a disk that cannot read it, or a name too long for one
                found = f"cannot be read: {error.strerror}"
            if found:
                return f"{str(self.path / stage / name)[:400]} {found}"
        return ""

    def file(self, stage: str, name: str) -> Path:
        """One file of a finished stage, its checksum verified."""
        if damage := self.damage(stage, name):
            raise self._damaged(stage, damage)
        return self.path / stage / name

    def read(self, stage: str, name: str, form: type[T]) -> T:
        """A JSON file of a finished stage: its checksum verified, then its form."""
        return read_typed(self.file(stage, name), form, remedy=self._again(stage))

    def artifact(self, stage: str) -> Path:
        """The stage's folder, its checksums verified."""
        if not self.has(stage):
            if (self.path / "compare.json").is_file() or (self.path / "cells").is_dir():
                raise RunError(
                    f"{self.path} is a comparison: it keeps figures, no classifiers",
                    expected="a directory made by d2cp run",
                    remedy=f"d2cp show {self.path} prints its figures; for a classifier, "
                    "d2cp run DATA --out RUN",
                )
            raise RunError(
                f"{self.path} has no {stage!r} stage yet",
                expected=f"a finished {stage} stage",
                remedy=f"d2cp run DATA --out {self.path}",
            )
        if damage := self.damage(stage):
            raise self._damaged(stage, damage)
        return self.path / stage

    def require_not_own(self, file: Path) -> None:
        """Refuse a file that a person names where it may be one of the run's own."""
        place, home = file.resolve(), self.path.resolve()
        if place.is_relative_to(home) and (place.parent != home or place.suffix != ".csv"):
            raise RunError(
                f"{file} is in the folder of the run, which has files of its own there",
                expected="a file elsewhere, or a .csv file directly in it",
                remedy=f"name {self.path / 'table.csv'}, say",
            )

    def _damaged(self, stage: str, damage: str) -> RunError:
        return RunError(
            damage,
            expected="the bytes named in the stage's manifest",
            remedy=self._again(stage),
        )

    def _anew(self) -> str:
        record = self.path / "run.json"
        return f"delete {record} and give the command that made the run again; stages are kept"

    def _again(self, stage: str) -> str:
        return f"delete {self.path / stage} and run again; other stages are kept"

    @contextmanager
    def writing(self, stage: str, inputs: str, seconds_before: float = 0.0) -> Iterator[Path]:
        """A fresh folder for a stage; it takes its name only when the block ends well."""
        began = time.monotonic()
        with whole_folder(self.path / stage) as folder:
            yield folder
            files = {
                str(file.relative_to(folder)): {
                    "bytes": file.stat().st_size,
                    "sha256": sha256(file),
                }
                for file in sorted(folder.rglob("*"))
                if file.is_file()
            }
            seconds = round(seconds_before + time.monotonic() - began, 2)
            manifest = {"stage": stage, "inputs": inputs, "seconds": seconds, "files": files}
            write_json(folder / "manifest.json", manifest)


def _difference(file: Path, home: Path, entry: FileEntry) -> str:
    """How a file differs from its entry in the manifest, or an empty string."""
    if not file.is_file():
        return "is missing"
    if not file.resolve().is_relative_to(home.resolve()):
        return "is a link that leads out of the run"
    if file.stat().st_size != entry["bytes"] or sha256(file) != entry["sha256"]:
        return "has changed since it was written"
    return ""


def _take(into: dict[str, Any], source: dict[str, Any], name: str) -> None:
    """The value of a dotted name, copied from one nested mapping to another."""
    *folders, last = name.split(".")
    for part in folders:
        into, source = into.setdefault(part, {}), source.get(part) or {}
    if last in source:
        into[last] = source[last]


def _placeless(value: Any) -> Any:
    return {k: v for k, v in value.items() if k not in PLACE} if isinstance(value, dict) else value


def first_difference(before: Any, now: Any, where: str) -> str:
    """The first place where two nested values differ, in words."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted([*before, *now], key=lambda name: name != "preset"):
            if before.get(key) != now.get(key):
                return first_difference(before.get(key), now.get(key), f"{where}.{key}")
    return f"{where} was {before!r}, now {now!r}"
