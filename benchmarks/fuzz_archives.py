"""Archives as `d2cp fetch` unpacks them, for `fuzz_readers`: good ones of each kind, changed."""

from __future__ import annotations

import io
import random
import shutil
import tarfile
import zipfile
from pathlib import Path

from d2cp.data.fetch.unpack import unpack
from mutations import mutate_bytes

MEMBERS = {f"set/{k}.txt": random.Random(k).randbytes(200) + b"plain " * 40 for k in range(5)}
ZIPS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def prepare_archives(folder: Path, _: Path) -> None:
    (folder / "good").mkdir()
    for kind in ("tar", "gz", "bz2", "xz"):
        with tarfile.open(folder / "good" / kind, f"w:{kind.removesuffix('tar')}") as archive:
            for name, data in MEMBERS.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    for method in ZIPS:
        with zipfile.ZipFile(folder / "good" / f"zip{method}", "w", method) as zipped:
            for name, data in MEMBERS.items():
                zipped.writestr(name, data)


def read_archive(folder: Path, draw: random.Random) -> None:
    good = draw.choice(sorted((folder / "good").iterdir()))
    read_archive_bytes(folder, mutate_bytes(good.read_bytes(), draw))


def read_archive_bytes(folder: Path, data: bytes) -> None:
    """Nothing may appear outside of the place that it is unpacked in."""
    place, before = folder / "place", {p.name for p in folder.iterdir()}
    place.mkdir()
    try:
        (place / "archive").write_bytes(data)
        unpack(place / "archive", place)
    finally:
        shutil.rmtree(place)
        if strange := {p.name for p in folder.iterdir()} - before:
            raise AssertionError(f"an archive wrote {strange}")
