"""Which files below a folder are images of a data set, and what is passed over."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from d2cp.data.images import EXTENSIONS

CLUTTER = ("__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini")


@dataclass
class LeftOut:
    """What stands in a data folder and is not read, for people to know."""

    suffixes: Counter[str] = field(default_factory=Counter)
    beside_classes: Counter[str] = field(default_factory=Counter)
    links: list[str] = field(default_factory=list)

    def beside(self, folder: Path) -> None:
        """Images that lie beside the class folders, in none of them."""
        loose = [p.name for p in folder.iterdir() if p.is_file() and _is_image(p.name)]
        if loose:
            self.beside_classes[str(folder)] += len(loose)

    def findings(self) -> list[str]:
        found = [
            f"{n} images lie in {folder}, in no class folder, and are not read"
            for folder, n in self.beside_classes.items()
        ]
        if self.suffixes:
            listed = ", ".join(
                f"{n} {suffix or 'without suffix'}" for suffix, n in self.suffixes.most_common()
            )
            found.append(f"files that are not images by their suffix were left out: {listed}")
        if self.links:
            more = f" and {len(self.links) - 1} more" if len(self.links) > 1 else ""
            found.append(
                f"a linked folder inside a class folder is not followed: {self.links[0]}{more}"
            )
        return found


def image_names(
    root: Path, leaf: str, limit: int | None = None, left: LeftOut | None = None
) -> list[str]:
    """Images below root/leaf by suffix, sorted, relative to root; what is not read is noted in
    `left`. Names that start with a dot (left by file managers) are not data, nor is a run."""
    found: list[str] = []
    left = left or LeftOut()
    for folder, inner, files in os.walk(root / leaf):
        inner[:] = sorted(name for name in inner if _is_data(Path(folder, name)))
        left.links += [os.path.join(folder, n) for n in inner if Path(folder, n).is_symlink()]
        for name in sorted(files):
            if name.startswith(".") or name in CLUTTER:
                continue
            if not _is_image(name):
                left.suffixes[os.path.splitext(name)[1].lower()] += 1
                continue
            found.append(os.path.relpath(os.path.join(folder, name), root))
            if limit is not None and len(found) >= limit:
                return found
    return found


def _is_image(name: str) -> bool:
    return not name.startswith(".") and os.path.splitext(name)[1].lower() in EXTENSIONS


def _is_data(folder: Path) -> bool:
    """Hidden folders are not, and neither is a run that was put among the images."""
    hidden = folder.name.startswith(".") or folder.name in CLUTTER
    return not hidden and not is_run(folder)


def is_run(folder: Path) -> bool:
    """Whether d2cp itself wrote the folder: a run, or an exported classifier."""
    if (folder / "run.json").is_file():
        return True
    config = folder / "config.json"
    if not config.is_file():
        return False
    with config.open("rb") as file:
        return b'"d2cp_classifier"' in file.read(1 << 20)


def folders(path: Path) -> list[str]:
    """Names of the folders that hold data."""
    return sorted(item.name for item in path.iterdir() if item.is_dir() and _is_data(item))
