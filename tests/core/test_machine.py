"""The commit that figures are of: that of the checkout, and of no other repository."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from d2cp.core.differences import ABSENT, differing, told
from d2cp.core.machine import code_commit


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_the_commit_of_a_checkout_and_whether_files_were_changed_since(tmp_path):
    package = tmp_path / "src" / "d2cp"
    package.mkdir(parents=True)
    (package / "core.py").write_text("one\n")
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *who, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    commit = git("rev-parse", "--short", "HEAD")
    assert code_commit(package) == commit
    (package / "core.py").write_text("two\n")
    code_commit.cache_clear()
    assert code_commit(package) == f"{commit}-dirty"
    installed = tmp_path / "venv" / "lib" / "site-packages" / "d2cp"  # in that repository
    installed.mkdir(parents=True)
    assert code_commit(installed) == ""


def test_differences_of_settings_by_their_dotted_names():
    then = {"a": {"lr": 0.1, "old": 1, "sizes": (64, 96)}, "same": True}
    now = {"a": {"lr": 0.2, "new": False, "sizes": [64, 96]}, "same": True}
    found = differing(then, now)
    assert found == {"a.lr": (0.1, 0.2), "a.old": (1, ABSENT), "a.new": (ABSENT, False)}
    assert [told(name, *pair) for name, pair in found.items()] == [
        "a.lr was 0.1, is now 0.2",
        "a.new did not exist, is now false",
        "a.old was 1, does not exist any more",
    ]
