"""Random small runs with random options, random kills and random damage, for a given time.

    python benchmarks/soak.py --minutes 60

Settings are drawn from the option table itself (`d2cp presets NAME --explain`). A run, a scan, or a
grid of `compare` or `reproduce`, on one thread or with all cores, is started, killed now and then
(all its processes, the first alone, another alone), damaged now and then, and started again with
the same command; when it is done it is shown, reported, evaluated, exported, and the export asked.
Every command must end well or in one of the package's own messages with something to do about it;
what the message says to delete is deleted, and --force is given where it says so. Exit code 0 only
when nothing else happened.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import re
import shutil
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from d2cp.config import Config
from damage import command, damage
from kill_jobs import JOBS, SMALL
from killed_process import (
    Strike,
    attempt,
    checkpoints_every_step,
    import_everything,
    kill_first,
    kill_group,
    kill_other,
    use_all_cores,
)
from small_data import write_answers, write_digits

LEFT_ALONE = {
    # what decides how long a run takes, where it computes, and what it is called
    *(name for name in SMALL),
    *("preset", "backbone", "disentangle.size", "disentangle.precision", "debias.precision"),
    *("debias.image_size", "debias.resize", "disentangle.space"),
}
LATER = ("show", "report", "evaluate", "export", "predict")
OWN_CODES = {0, 1, 2, 3, 4, 5, 6, 10}
DELETE = re.compile(r"delete (/\S+?)(?:[ ,:;]|$)")


def option_table(kind: type = Config, prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Every setting by its dotted name: its type and its usual value."""
    found = {}
    hints, usual = get_type_hints(kind), kind()
    for field in dataclasses.fields(kind):
        name, value = f"{prefix}{field.name}", getattr(usual, field.name)
        if dataclasses.is_dataclass(value):
            found |= option_table(type(value), f"{name}.")
        else:
            found[name] = (hints[field.name], value)
    return found


def other_value(hint: Any, usual: Any, draw: random.Random) -> Any:
    """A value of the setting's type; now and then one that is out of range."""
    if get_origin(hint) is Literal:
        return draw.choice(get_args(hint))
    if isinstance(usual, bool):
        return draw.random() < 0.5
    if isinstance(usual, int):
        return draw.choice((0, 1, 2, usual, max(0, usual - 1), usual + 1, -1))
    if isinstance(usual, float):
        return draw.choice((0.0, usual / 2, usual * 2, 1.0, usual, -1.0, 1e30))
    return usual


def draw_settings(table: dict[str, tuple[Any, Any]], draw: random.Random) -> list[str]:
    free = sorted(table.keys() - LEFT_ALONE)
    chosen = {
        name: other_value(*table[name], draw) for name in draw.sample(free, draw.randint(0, 5))
    }
    values = {**SMALL, **chosen, "debias.tier": draw.choice(("features", "prompts"))}
    return [
        word
        for name, value in values.items()
        if value is not None
        for word in ("--set", f"{name}={_toml(value)}")
    ]


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, (list, tuple)) else str(value)


class Soak:
    def __init__(self, work: Path, seed: int) -> None:
        self.work, self.seed = work, seed
        self.table = option_table()
        self.figures: Counter[str] = Counter()
        self.faults: list[str] = []
        self.digits = write_digits(work / "digits")
        self.answers = write_answers(self.digits, work / "answers.csv")
        self.all_cores = False
        self.force = False

    def command(
        self, words: list[str], out: Path, wait: float = 1e9, strike: Strike = kill_group
    ) -> int | None:
        """Exit code, None of a kill; what is neither is a fault."""
        # Two even where one core is granted: the processes beside the first then share it.
        before = partial(use_all_cores, at_least=2) if self.all_cores else lambda: None
        code = attempt(words, out, self.work / "log", wait, False, strike=strike, before=before)
        self.figures["commands"] += 1
        if code is None:
            self.figures["kills"] += 1
            return None
        said = (self.work / "log").read_text(errors="replace")
        if code not in OWN_CODES or "Traceback (most recent" in said:
            self.faults.append(f"{self.seed}: exit {code}: {' '.join(words)}\n{said[-1500:]}")
        elif code not in (0, 10):
            self.figures[f"refused, code {code}"] += 1
            if code == 5:
                self._obey(said, out)
        return code

    def _obey(self, said: str, out: Path) -> None:
        """The message's advice, to the letter, where it is to delete something of this run."""
        self.force = "--force" in said.partition("to do:")[2]
        for name in DELETE.findall(said):
            path = Path(name)
            if path.is_relative_to(out) and path != out:
                self.figures["advice followed"] += 1
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def round(self, draw: random.Random) -> None:
        out = self.work / "run"
        shutil.rmtree(out, ignore_errors=True)
        data = draw.choice(("cmnist", "cmnist10", "digits-unbiased", str(self.digits)))
        cache = ["--cache", str(self.work / "cache")]
        self.all_cores = draw.random() < 0.3
        words = self.draw_command(data, cache, draw)
        self.figures[f"{words[0]}s"] += 1
        code: int | None = None
        for _ in range(draw.randint(0, 3)):
            code = self.command(words, out, draw.uniform(0, 6), self.draw_strike(draw))
        for time_ in range(6):  # the last three without new damage: each advice must help
            if time_ < 3 and out.is_dir() and any(out.rglob("*.json")) and draw.random() < 0.4:
                damage(out, draw, fitting=False)
                self.figures["damages"] += 1
            force, self.force = self.force, False  # a refusal sets it anew
            code = self.command([*words, *(["--force"] if force else [])], out)
            self.figures["forced"] += force
            if code != 5:
                break
        self.figures["runs finished" if code == 0 else "runs refused"] += 1
        if code != 0:
            if code == 5:
                said = (self.work / "log").read_text(errors="replace")[-1500:]
                self.faults.append(
                    f"{self.seed}: the advice did not help: {' '.join(words)}\n{said}"
                )
            return
        if words[0] == "reproduce":
            return
        harmed = False
        names = ("show", "report") if words[0] == "compare" else LATER
        for name in names:
            if draw.random() < 0.3:
                damage(out, draw, fitting=draw.random() < 0.5)
                self.figures["damages"] += 1
                harmed = True
            if draw.random() < 0.5:
                self.later(name, out, harmed)

    def draw_command(self, data: str, cache: list[str], draw: random.Random) -> list[str]:
        kind = draw.random()
        if kind < 0.15:
            more = draw.choice(([], ["--columns", "site"], ["--predictions", str(self.answers)]))
            return ["scan", str(self.digits), *cache, "--seed", str(draw.randint(0, 3)), *more]
        if kind < 0.25:
            return [*JOBS["compare"], "--seeds", "1", *cache]
        if kind < 0.35:
            return [*JOBS["reproduce"], "--seeds", "1", *cache]
        words = ["run", data, *cache]
        if draw.random() < 0.2:
            words.append("--no-control")
        if draw.random() < 0.25:
            words += ["--findings", draw.choice(("1", "1,2", "2"))]
        return [*words, *draw_settings(self.table, draw)]

    def draw_strike(self, draw: random.Random) -> Strike:
        """Whom a kill meets; a process that works beside the first one may die alone."""
        killed: list[str] = []
        other = partial(kill_other, draw=draw, killed=killed)
        return draw.choice((kill_group, kill_first, other))

    def later(self, name: str, out: Path, harmed: bool) -> None:
        """A command on the finished run, which may have been damaged since."""
        words: list[object] = [name, out]
        if name == "export":
            words += ["--to", self.work / "export"]
        if name == "predict":
            if not (self.work / "export").is_dir():
                return
            words = [name, self.work / "export", self.digits / "img"]
        self.figures["commands"] += 1
        try:
            code, said = command(*words)
        except Exception as error:
            self.faults.append(f"{self.seed}: {name}: {type(error).__name__}: {error}")
            return
        scanned = name in ("evaluate", "export") and not (out / "evaluate").is_dir()
        if code not in OWN_CODES or (code != 0 and not harmed and not scanned):
            self.faults.append(f"{self.seed}: {name}: exit {code}: {said[-500:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    import_everything()
    checkpoints_every_step()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="d2cp-soak-") as folder:
        soak = Soak(Path(folder), given.seed)
        rounds = 0
        while time.monotonic() < began + 60 * given.minutes:
            known = len(soak.faults)
            soak.round(random.Random(f"{given.seed}/{rounds}"))
            rounds += 1
            for text in soak.faults[known:]:
                print(f"after {rounds} runs: {text}", flush=True)
            if rounds % 10 == 0:
                print(told(soak, rounds, began), flush=True)
        print(f"all: {told(soak, rounds, began)}")
        return 1 if soak.faults else 0


def told(soak: Soak, rounds: int, began: float) -> str:
    listed = ", ".join(f"{name} {n}" for name, n in sorted(soak.figures.items()))
    minutes = (time.monotonic() - began) / 60
    return f"{minutes:.1f} minutes, {rounds} rounds: {listed}; {len(soak.faults)} faults"


if __name__ == "__main__":
    raise SystemExit(main())
