"""Finished runs of `d2cp run`, one a seed, as a result file: figures over seeds, what was found,
what was shipped, seconds of the stages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from d2cp.config import load_config
from d2cp.core.files import write_json
from d2cp.core.run_directory import RunDirectory
from d2cp.evaluate.columns import COLUMNS
from d2cp.evaluate.metrics import over_seeds
from d2cp.reproduce.page import spread
from tools.results.files import ResultFileError, require


def take_runs(runs: Sequence[Path], docs: Path, name: str, said: Mapping[str, str]) -> Path:
    opened = [RunDirectory.open(path) for path in runs]
    commands = {_command(run.description) for run in opened}
    if len(commands) > 1:
        raise ResultFileError(f"the runs differ in more than their seed: {sorted(commands)}")
    seeds = [int(run.description["config"]["seed"]) for run in opened]
    results = [r for run in opened for r in _json(run, "evaluate/results.json")]
    environments = [_json(run, "environment.json") for run in opened]
    whole = {
        "schema": 1,
        "command": f"{commands.pop()} --seed {seeds[0]}",  # the others are named below it
        "commit": ", ".join(sorted({e.get("commit", "") for e in environments} - {""})),
        "machine": "; ".join(sorted({e["machine"] for e in environments})),
        "seeds": seeds,
        "selection": "",
        "tables": {"": _accuracies(results), "seconds": _seconds(opened)},
        "figures": {**_figures(results), **_found(opened)},
    }
    whole |= {key: value for key, value in said.items() if not whole[key]}
    target = docs / "results" / "measured" / f"{name}.json"
    require(whole, ("commit",), runs[0])
    target.parent.mkdir(parents=True, exist_ok=True)
    write_json(target, whole)
    return target


def _json(run: RunDirectory, name: str) -> Any:
    path = run.path / name
    if not path.is_file():
        raise ResultFileError(f"{run.path} is not finished: it has no {name}")
    return json.loads(path.read_text("utf-8"))


def _command(description: Mapping[str, Any]) -> str:
    """`d2cp run` with what differs from the preset; folders of this machine are words."""
    config, data = description["config"], description["data"]
    place = str(data.get("path", data["name"]))  # a folder, or the name of an embedded set
    words = ["d2cp run", Path(place).name.upper() if "/" in place else place, "--out RUN"]
    words.append(f"--preset {config['preset']}")
    base = load_config(config["preset"]).to_dict()
    if config["backbone"] != base["backbone"]:
        words.append(f"--backbone {Path(config['backbone']).name.upper()}")
    left = {k: v for k, v in config.items() if k not in ("seed", "preset", "backbone")}
    return " ".join([*words, *_changes(left, base, "")])


def _changes(own: Mapping[str, Any], base: Mapping[str, Any], above: str) -> list[str]:
    made = []
    for key, value in own.items():
        if isinstance(value, dict):
            made += _changes(value, base.get(key, {}), f"{above}{key}.")
        elif value != base.get(key):
            made.append(f"--set {above}{key}={json.dumps(value)}")
    return made


Key = tuple[str, str, str]


def _by_key(results: Sequence[Mapping[str, Any]]) -> dict[Key, list[Mapping[str, Any]]]:
    made: dict[Key, list[Mapping[str, Any]]] = {}
    for r in results:
        made.setdefault((r["split"], r["method"], r["selection"]), []).append(r)
    return made


def _accuracies(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    header = ["split", "method", "picked by", *(column.heading for column in COLUMNS), "by seed"]
    rows = []
    for (split, method, selection), own in _by_key(results).items():
        cells = [over_seeds([r[column.key] for r in own]) for column in COLUMNS]
        seeds = ", ".join(f"{100 * r[COLUMNS[0].key]:.1f}" for r in own)
        rows.append(
            [split, method, selection, *(spread(c.mean, c.std) for c in cells), seeds],
        )
    return {"columns": header, "rows": rows}


def _figures(results: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    made = {}
    for (split, method, _), own in _by_key(results).items():
        for column in COLUMNS:
            value = over_seeds([r[column.key] for r in own])
            made[f"{split} {method} {column.key}"] = spread(value.mean, value.std)
    return made


def _found(runs: Sequence[RunDirectory]) -> dict[str, str]:
    """Verdicts, what is recommended, seconds: in the order of the runs."""
    mined = [_json(run, "mine/summary.json") for run in runs]
    made = {"verdicts": ", ".join(one["verdict"] for one in mined)}
    for split in mined[0].get("balanced_accuracy", {}):
        right = [one["balanced_accuracy"][split] for one in mined]
        made[f"{split} pseudo"] = ", ".join(f"{value:.3f}" for value in right)
    shipped = [run for run in runs if (run.path / "evaluate/choice.json").is_file()]
    made["shipped"] = ", ".join(_json(run, "evaluate/choice.json")["model"] for run in shipped)
    spent = {stage: [f"{value:.0f}" for value in each] for stage, each in _spent(runs).items()}
    return made | {f"seconds {stage}": ", ".join(each) for stage, each in spent.items()}


def _spent(runs: Sequence[RunDirectory]) -> dict[str, list[float]]:
    """Seconds of each stage, in the order of the runs."""
    made: dict[str, list[float]] = {}
    for run in runs:
        for path in sorted(run.path.glob("*/manifest.json")):
            stage = json.loads(path.read_text("utf-8"))
            made.setdefault(stage["stage"], []).append(float(stage["seconds"]))
    return made


def _seconds(runs: Sequence[RunDirectory]) -> dict[str, Any]:
    """The stages, the longest first. Some run beside others: their sum is not the run's time."""
    spent = _spent(runs)
    rows = [
        [stage, ", ".join(f"{value:.0f}" for value in spent[stage])]
        for stage in sorted(spent, key=lambda stage: -max(spent[stage]))
    ]
    return {"columns": ["stage", "seconds"], "rows": rows}
