"""A published data set in a folder of one's own: what is there is kept, what came is recorded."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from d2cp.core.files import sha256, write_json
from d2cp.core.locks import held_in
from d2cp.core.records import FetchedFile
from d2cp.core.typed_json import read_typed
from d2cp.data.fetch.catalogue import File, Published
from d2cp.data.fetch.download import Step, download
from d2cp.data.fetch.unpack import unpack
from d2cp.errors import DataError

RECORD = "fetched.json"
Say = Callable[[str], None]


def bring(wanted: Published, folder: Path, say: Say, step: Step) -> None:
    """Fetch, verify and unpack. Going on, and a second start, do only what is missing."""
    try:
        _bring(wanted, folder, say, step)
    except OSError as error:  # the network's faults are told by `download`
        raise DataError(
            f"{folder} cannot be written: {error.strerror or error}",
            expected="a folder that is yours to write in, with space",
            remedy="free some, or choose another folder; the same command goes on",
        ) from error


def _bring(wanted: Published, folder: Path, say: Say, step: Step) -> None:
    with held_in(folder, ".fetch.lock", wait=True, choose="folder"):
        if wanted.size is not None and shutil.disk_usage(folder).free < 2 * wanted.size:
            raise DataError(
                f"{folder} has too little space",
                expected=f"{2 * wanted.size / 2**30:.1f} GiB for the archive and what is in it",
                remedy="free some, or choose another folder",
            )
        path = folder / RECORD
        record: dict[str, Any] = {}
        if path.is_file():
            remedy = f"delete {path} and start again; files that came whole are kept"
            record = dict(read_typed(path, dict[str, FetchedFile], remedy=remedy))
        for file in wanted.files:
            known = record.get(file.name, {})
            if known and all((folder / name).exists() for name in known["gives"]):
                say(f"{file.name}: there")
                continue
            record[file.name] = _one(file, folder, known, say, step)
            write_json(path, record)


def _one(file: File, folder: Path, known: dict[str, Any], say: Say, step: Step) -> dict[str, Any]:
    path = folder / file.name
    if path.is_file():
        found = sha256(path)
        if file.sha256 and found != file.sha256:
            raise DataError(
                f"{path} is not the published file: SHA-256 {found}",
                expected=file.sha256,
                remedy="delete it and start again",
            )
        say(f"{file.name}: there, not fetched again")
    else:
        say(f"{file.name}: from {file.url}")
        found = download(file, path, step)
    if known and known["sha256"] != found:
        raise DataError(
            f"{file.url} has changed since it was first fetched: SHA-256 {found}",
            expected=known["sha256"],
            remedy=f"delete {folder / RECORD} if the change is known and wanted",
        )
    if file.sha256:
        say(f"{file.name}: SHA-256 as published")
    else:
        say(f"{file.name}: SHA-256 {found}, recorded; none is published to compare it with")
    gives = [file.name]
    if file.unpack:
        gives = unpack(path, folder)
        path.unlink()
        say(f"{file.name}: unpacked to {', '.join(gives)}")
    return {"url": file.url, "sha256": found, "published": bool(file.sha256), "gives": gives}
