from __future__ import annotations

from pathlib import Path

import pytest

from image_files import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Write {relative path: bytes} below a fresh folder."""

    def write(files: dict[str, bytes]) -> Path:
        root = tmp_path / "set"
        root.mkdir(exist_ok=True)
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        return root

    return write


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"
