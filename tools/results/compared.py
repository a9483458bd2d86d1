"""Tables of `d2cp compare`: what docs keep of its compare.json, and that as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from d2cp.cli.compare import difference
from d2cp.compare.comparison import labels_used
from d2cp.compare.registry import method
from d2cp.evaluate.columns import COLUMNS, COSTS, WORST
from d2cp.reproduce.page import spread
from tools.results.files import require, shortened
from tools.results.lines import lines

KEPT = (
    *("data", "selection", "budget", "epochs", "tier", "machine", "commit", "searched"),
    *("skipped", "summary", "paired"),
)
TIMELESS = [cost for cost in COSTS if cost.key != "seconds"]  # seconds are of a busy machine


def kept(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Of compare.json: figures over seeds, differences, every seed's worst group; no paths."""
    seeds: dict[str, dict[str, dict[str, float]]] = {}
    for result in whole["results"]:
        own = seeds.setdefault(result["split"], {}).setdefault(result["method"], {})
        own[str(result["seed"])] = result[WORST.key]
    made = {key: whole[key] for key in KEPT if key in whole}
    made["command"] = shortened(whole["command"])
    return {**made, "backbone": Path(whole["backbone"]).name, "by_seed": seeds}


def take_comparison(folder: Path, docs: Path, name: str, said: Mapping[str, str]) -> Path:
    """`folder` is one of `d2cp compare`, or of a benchmark that ends in one; `said` is what its
    file does not say because older code wrote it."""
    whole = json.loads((folder / "compare.json").read_text("utf-8"))
    whole |= {key: value for key, value in said.items() if not whole.get(key)}
    require(whole, ("command", "commit"), folder / "compare.json")
    target = docs / "results" / "compare" / f"{name}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(kept(whole), indent=1, ensure_ascii=False) + "\n", "utf-8")
    return target


def table(path: Path, split: str) -> str:
    whole = json.loads(path.read_text("utf-8"))
    header = ["method", "group labels", *(column.heading for column in COLUMNS)]
    header += ["D2CP minus it, paired [95%]", *(cost.heading for cost in TIMELESS), "by seed"]
    rows = []
    for line in whole["summary"][split]:
        figures = [spread(line[c.key], line[f"{c.key}_std"]) for c in COLUMNS]
        seeds = whole["by_seed"][split][line["method"]].values()
        rows.append(
            [
                method(line["method"]).spec.title,
                labels_used(line),
                *figures,
                difference(whole["paired"][split].get(line["method"])),
                *(cost.text(line[cost.key]) for cost in TIMELESS),
                ", ".join(f"{100 * value:.1f}" for value in seeds),
            ]
        )
    right = [False, False, *[True] * len(COLUMNS), False, *[True] * len(TIMELESS), False]
    return lines(header, rows, right)
