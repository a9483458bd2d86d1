"""Which backbone it is: by the content of its files, wherever they lie; no torch here."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from d2cp.core.files import fingerprint, sha256

EMBEDDED = "embedded"
_FILES = ("config.json", "preprocessor_config.json", "*.safetensors", "*.safetensors.index.json")


def resolved(name_or_folder: str) -> str:
    """A local folder by its absolute path, which holds from everywhere; names as they are."""
    folder = Path(name_or_folder).expanduser()
    if name_or_folder != EMBEDDED and folder.is_dir():
        return str(folder.resolve())
    return name_or_folder


def backbone_key(name_or_folder: str) -> str:
    """The embedded one and one that is not on this machine by name, every other by content."""
    if name_or_folder == EMBEDDED:
        return EMBEDDED
    folder = Path(name_or_folder).expanduser()
    if not folder.is_dir():
        found = _cached(name_or_folder)
        if found is None:
            return name_or_folder
        folder = found
    files = sorted(path for pattern in _FILES for path in folder.glob(pattern) if path.is_file())
    return fingerprint([[path.name, _digest(path, _stamp(path))] for path in files])


def _cached(name: str) -> Path | None:
    """The folder of a hub model that was fetched before."""
    from transformers.utils import cached_file

    try:
        file = cached_file(name, "config.json", local_files_only=True)
    except (OSError, ValueError):
        return None
    return None if file is None else Path(file).parent


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


@lru_cache(maxsize=64)
def _digest(path: Path, stamp: tuple[int, int, int]) -> str:
    """Of a file's version: a stage asks for it again and again."""
    return sha256(path)
