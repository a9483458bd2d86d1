"""What `d2cp predict` is given: image files, folders of them, a list on standard input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from d2cp.data.images import EXTENSIONS
from d2cp.errors import DataError

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class ImageList:
    files: list[Path]
    skipped: list[Path]
    """Files inside the folders that are no images by their name."""

    def note(self) -> str:
        if not self.skipped:
            return ""
        count = len(self.skipped)
        files = "1 file that is no image" if count == 1 else f"{count} files that are no images"
        return f"skipped {files} by name: {self.skipped[0]}{' …' if count > 1 else ''}"


def image_list(paths: Sequence[Path], lines: Iterable[str]) -> ImageList:
    """Files as given; a folder stands for the image files below it, sorted; `-` for the files
    that `lines` name, one each."""
    found = ImageList([], [])
    for path in paths:
        if str(path) == STANDARD_INPUT:
            found.files.extend(Path(name) for line in lines if (name := line.rstrip("\r\n")))
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file())
            for file in inside:
                known = file.suffix.lower() in EXTENSIONS
                (found.files if known else found.skipped).append(file)
        else:
            found.files.append(path)
    if not found.files:
        raise DataError(
            f"no image files in {', '.join(map(str, paths))}",
            expected=", ".join(sorted(EXTENSIONS)),
        )
    return found
