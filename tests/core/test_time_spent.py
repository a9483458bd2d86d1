"""The time of a killed attempt: added where it can be read, never in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from d2cp.core import files
from d2cp.core.time_spent import TimeSpent


@pytest.mark.parametrize("content", ["", "abc", "nan", "-3", "inf"])
def test_a_damaged_file_counts_as_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "seconds").write_text(content)
    assert TimeSpent(tmp_path / "seconds").before == 0


def test_failed_attempts_add_up_and_success_clears(tmp_path: Path) -> None:
    path = tmp_path / "seconds"
    path.write_text("100")
    with pytest.raises(KeyboardInterrupt), TimeSpent(path):
        raise KeyboardInterrupt
    assert TimeSpent(path).before >= 100
    with TimeSpent(path) as spent:
        assert spent.total >= 100
    assert not path.exists()


def test_a_full_disk_does_not_hide_the_real_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "seconds"
    path.write_text("7")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(ValueError, match="the real one"), TimeSpent(path):
        raise ValueError("the real one")
    assert path.read_text() == "7" and [p.name for p in tmp_path.iterdir()] == ["seconds"]
