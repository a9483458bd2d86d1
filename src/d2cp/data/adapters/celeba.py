"""CelebA: attribute and partition lists (.csv, .txt, or the zip of either) and aligned images."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import replace
from pathlib import Path, PurePosixPath

from d2cp.data.assemble import Columns, Options, assemble, expect
from d2cp.data.delimited import MAX_TEXT_BYTES, delimiter_of, read_text, to_text
from d2cp.data.table import Table
from d2cp.errors import DataError

LAYOUT = """\
FOLDER/list_attr_celeba.csv | .txt | .zip
       list_eval_partition.csv | .txt
       img_align_celeba/000001.jpg …"""
COUNTS = {
    "train": {"0,0": 71629, "0,1": 66874, "1,0": 22880, "1,1": 1387},
    "val": {"0,0": 8535, "0,1": 8276, "1,0": 2874, "1,1": 182},
    "test": {"0,0": 9767, "0,1": 7535, "1,0": 2480, "1,1": 180},
}
CENTRE_CROP = 178
_ROLES = {"y": "Blond_Hair", "a": "Male"}
_ATTRIBUTES = "list_attr_celeba"
_PARTITION = "list_eval_partition"


def recognise(path: Path) -> bool:
    return path.is_dir() and _find(path, _ATTRIBUTES) is not None


def load(path: Path, options: Options) -> Table:
    attributes, partition = _find(path, _ATTRIBUTES), _find(path, _PARTITION)
    if attributes is None or partition is None:
        missing = _ATTRIBUTES if attributes is None else _PARTITION
        raise DataError(f"no {missing}.* in {path}", expected=f"\n{LAYOUT}")
    if unknown := set(options.columns) - set(_ROLES):
        raise DataError(
            f"column roles {', '.join(sorted(unknown))}", expected="y or a, as CelebA attributes"
        )
    roles = {**_ROLES, **options.columns}
    labels = _read_attributes(attributes, (roles["y"], roles["a"]))
    split = _read_partition(partition)
    if split.keys() != labels.keys():
        odd = sorted(split.keys() ^ labels.keys())
        raise DataError(
            f"{len(odd)} images are in only one of {attributes.name} and {partition.name}: "
            f"{', '.join(odd[:3])}…",
            expected="the same images in both",
        )
    names = list(split)
    table = assemble(
        Columns(
            names=names,
            y=[labels[name][0] for name in names],
            split=list(split.values()),
            a=[labels[name][1] for name in names],
        ),
        name=path.resolve().name,
        format="celeba",
        root=options.images or _image_folder(path),
        options=options,
        centre_crop=CENTRE_CROP,
    )
    if table.n_values == 2 and table.n_classes == 2:
        table = replace(
            table,
            class_names=(f"not {roles['y']}", roles["y"]),
            attribute_names=(f"not {roles['a']}", roles["a"]),
        )
    return table if roles != _ROLES else expect(table, "celeba", COUNTS, claimed=True)


def _find(path: Path, stem: str) -> Path | None:
    """Kaggle keeps the lists at the top, the authors' archive in Anno and Eval."""
    for folder in (path, path / "Anno", path / "Eval"):
        for suffix in (".csv", ".txt", ".zip"):
            if (folder / f"{stem}{suffix}").is_file():
                return folder / f"{stem}{suffix}"
    return None


def _image_folder(path: Path) -> Path:
    name = "img_align_celeba"
    for folder in (path / name / name, path / name, path / "Img" / name):
        if folder.is_dir():
            return folder
    return path / name


def _lines(path: Path) -> list[str]:
    text = _read_zip(path) if path.suffix == ".zip" else read_text(path)
    return [line for line in text.splitlines() if line.strip()]


def _read_zip(path: Path) -> str:
    """One text file is read from the archive, by name and up to a limit; nothing is extracted."""
    try:
        with zipfile.ZipFile(path) as archive:
            wanted = [
                item
                for item in archive.infolist()
                if PurePosixPath(item.filename).name in (f"{path.stem}.txt", f"{path.stem}.csv")
                and ".." not in PurePosixPath(item.filename).parts
                and not item.filename.startswith("/")
            ]
            if len(wanted) != 1:
                raise DataError(
                    f"{path} holds {len(wanted)} files called {path.stem}.txt or .csv",
                    expected="one",
                )
            with archive.open(wanted[0]) as file:
                data = file.read(MAX_TEXT_BYTES + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error, EOFError) as error:
        raise DataError(
            f"{path} cannot be read: {error}", remedy="copy the archive again"
        ) from None
    if len(data) > MAX_TEXT_BYTES:
        raise DataError(f"{wanted[0].filename} in {path} is larger than {MAX_TEXT_BYTES} bytes")
    return to_text(data, str(path))


def _read_attributes(path: Path, wanted: tuple[str, str]) -> dict[str, tuple[str, str]]:
    """image → the two wanted attributes as "0" or "1" (the files have -1 or 0, and 1)."""
    lines = _lines(path)
    start = 1 if lines and lines[0].strip().isdigit() else 0  # the .txt form counts its rows first
    if len(lines) < start + 2:
        raise DataError(f"{path} has no rows", expected="a header and one line an image")
    delimiter = delimiter_of(lines[start])
    header = [cell.strip() for cell in lines[start].split(delimiter)]
    if header[0].lower() != "image_id":  # the .txt form does not name its first column
        header = ["image_id", *header]
    if missing := [name for name in wanted if name not in header]:
        raise DataError(
            f"{path} has no attribute {', '.join(missing)}", expected=", ".join(header[1:])
        )
    first, second = (header.index(name) for name in wanted)
    code = {"-1": "0", "0": "0", "1": "1"}
    labels = {}
    for line in lines[start + 1 :]:
        cells = [cell.strip() for cell in line.split(delimiter)]
        try:
            if len(cells) != len(header):
                raise KeyError
            labels[cells[0]] = code[cells[first]], code[cells[second]]
        except KeyError:
            raise DataError(
                f"{path}: the line {line[:60]!r}…",
                expected=f"an image and {len(header) - 1} values -1 or 1",
            ) from None
    if len(labels) != len(lines) - start - 1:
        raise DataError(f"{path} lists an image twice", expected="one line an image")
    return labels


def _read_partition(path: Path) -> dict[str, str]:
    split = {}
    for number, line in enumerate(lines := _lines(path)):
        cells = [cell.strip() for cell in line.split(delimiter_of(line))]
        if number == 0 and cells[0].lower() == "image_id":
            continue
        if len(cells) != 2 or cells[1] not in ("0", "1", "2"):
            raise DataError(f"{path}: the line {line[:60]!r}", expected="an image and 0, 1 or 2")
        split[cells[0]] = cells[1]
    if len(split) < len(lines) - 1:
        raise DataError(f"{path} lists an image twice", expected="one line an image")
    return split
