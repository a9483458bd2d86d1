"""A finished run with one file changed, as a disk or a hand might, or by somebody who also made its
checksums fit: every command must end well or in one of the package's own messages."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from d2cp.cli import main
from d2cp.core.files import sha256
from mutations import mutate_bytes, mutate_json

KEPT = (".lock", "report.html")


@dataclass
class Tally:
    """How commands ended: by exit code, and what came as an exception that was not ours."""

    inputs: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    foreign: dict[str, str] = field(default_factory=dict)
    no_remedy: set[str] = field(default_factory=set)

    def note(self, kind: str, detail: str) -> None:
        self.foreign.setdefault(kind, detail)
        self.ends["foreign"] += 1


def command(*words: object) -> tuple[int, str]:
    """A command in this process: its exit code and what it said. Foreign exceptions pass."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(action="ignore"),
    ):
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            return int(stop.code or 0), err.getvalue()
    return 0, err.getvalue()


def damage(run: Path, draw: random.Random, *, fitting: bool) -> Path:
    """Change one file of the run in place; `fitting`: its manifest agrees afterwards."""
    files = sorted(p for p in run.rglob("*") if p.is_file() and p.name not in KEPT)
    if fitting:
        files = [p for p in files if p.suffix in (".json", ".csv", ".safetensors", ".png")]
    # JSON is where forms can be wrong; of pictures there are many and all are alike.
    weights = [6 if p.suffix == ".json" else 1 if p.suffix == ".png" else 3 for p in files]
    path = draw.choices(files, weights)[0]
    data = path.read_bytes()
    change = mutate_json if path.suffix == ".json" else mutate_bytes
    kind = draw.random()
    if kind < 0.05 and not fitting:
        path.unlink()
    elif kind < 0.08 and not fitting:
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(change(data, draw))
    if fitting and path.name != "manifest.json":
        refit(run, path)
    return path


def refit(run: Path, path: Path) -> None:
    """The manifest of the file's stage names its new bytes, unless it is damaged itself."""
    stage = path.relative_to(run).parts[0]
    manifest = run / stage / "manifest.json"
    try:
        whole = json.loads(manifest.read_text(encoding="utf-8"))
        name = str(path.relative_to(run / stage))
        if name in whole["files"]:
            whole["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
            manifest.write_text(json.dumps(whole))
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return


def attack(
    good: Path,
    work: Path,
    commands: list[tuple[str, ...]],
    count: int,
    seed: int,
    tally: Tally | None = None,
) -> Tally:
    """`count` damaged copies of `good` in `work`; RUN and OUT in a command are filled in."""
    tally = tally or Tally()
    for index in range(count):
        draw = random.Random(f"{seed}/{index}")
        run, out = work / "run", work / "out"
        for path in (run, out):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(good, run)
        changed = damage(run, draw, fitting=draw.random() < 0.5)
        words = draw.choice(commands)
        tally.inputs += 1
        try:
            code, said = command(
                *(w.replace("RUN", str(run)).replace("OUT", str(out)) for w in words)
            )
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            own = [f for f in traceback.extract_tb(error.__traceback__) if "/d2cp/" in f.filename]
            place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else last.name
            what = f"{words[0]} {changed.relative_to(run)} ({seed}/{index})"
            tally.note(f"{type(error).__name__} at {place}", f"{what}: {str(error)[:200]}")
            continue
        tally.ends[str(code)] += 1
        if code not in (0, 1) and "to do:" not in said:
            tally.no_remedy.add(f"{words[0]} {changed.relative_to(run)}: {said[:160]}")
    return tally


def report(tally: Tally) -> str:
    lines = [f"{tally.inputs} damaged runs: ends {dict(sorted(tally.ends.items()))}"]
    lines += [f"  foreign: {kind}: {detail}" for kind, detail in sorted(tally.foreign.items())]
    lines += [f"  no remedy: {text}" for text in sorted(tally.no_remedy)]
    return "\n".join(lines)
