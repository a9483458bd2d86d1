"""Commits that result files name and that this history does not have: of code that was rebased, or
never landed. A reader could not find what ran."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

HASH = re.compile(r"^[0-9a-f]{7,40}$")


def strangers(docs: Path) -> list[str]:
    """In words, one a file; nothing where this is no checkout."""
    told = []
    for path in sorted((docs / "results").rglob("*.json")):
        content = json.loads(path.read_text("utf-8"))
        for commit in str(content.get("commit", "")).split(", "):
            if commit and not _is_known(commit, docs):
                told.append(f"{path.name} names commit {commit}, which this history does not have")
    return told


def _is_known(commit: str, docs: Path) -> bool:
    """`abc-dirty` is of no commit."""
    if not HASH.match(commit):
        return False
    asked = ["git", "-C", str(docs), "merge-base", "--is-ancestor", commit, "HEAD"]
    try:
        said = subprocess.run(asked, capture_output=True, timeout=10, check=False).returncode
    except (OSError, subprocess.SubprocessError):
        return True
    inside = subprocess.run(
        ["git", "-C", str(docs), "rev-parse", "--is-shallow-repository"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return said == 0 or inside != "false"
