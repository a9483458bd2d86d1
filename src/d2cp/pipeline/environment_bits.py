"""XRM on the classes and on the pseudo attribute: one bit a row for each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from d2cp.core.arrays import Ints
from d2cp.core.csv_columns import read_columns, whole_number
from d2cp.core.files import write_csv, write_json
from d2cp.environments.cross_risk import discover_environments
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovered import Discovery
from d2cp.pipeline.frozen_features import features
from d2cp.pipeline.pseudo_source import pseudo_attribute


@dataclass(frozen=True)
class Bits:
    """Environment bits of every row; 0 outside train and val, and where XRM was degenerate."""

    y: Ints
    a: Ints


def environments(context: Context, found: Discovery) -> Bits:
    """Bits for training and validation rows; a degenerate outcome is said, not hidden."""
    config = context.config
    values = features(context)
    inputs = context.inputs("environments")

    def make(folder: Path) -> None:
        table = context.blind
        train, val = table.rows("train"), table.rows("val")
        pseudo = pseudo_attribute(context, found)
        bits: dict[str, Ints] = {}
        summary = {}
        for name, labels, classes in (
            ("y", table.y, table.n_classes),
            ("a", pseudo.labels, pseudo.values),
        ):
            result = discover_environments(
                values[train],
                labels[train],
                values[val],
                labels[val],
                classes,
                config.environments,
                config.seed,
                stage=f"xrm/{name}",
            )
            bits[name] = np.zeros(len(table), np.int64)
            bits[name][train], bits[name][val] = result.train, result.val
            summary[name] = {
                "degenerate": result.degenerate,
                "reason": result.reason,
                "flip_rates": list(result.flip_rates),
                "chosen": result.chosen,
                "share_of_train": float(result.train.mean()),
            }
            if result.degenerate:
                what = "the class" if name == "y" else "the pseudo attribute"
                context.say(f"XRM on {what}: {result.reason}; its bit is 0 everywhere")
        write_json(folder / "summary.json", summary)
        rows = zip(table.ids, bits["y"], bits["a"], strict=True)
        write_csv(folder / "bits.csv", ["id", "y_xrm", "a_xrm"], rows)

    folder = context.stage("environments", inputs, make, alone=True)
    columns = read_columns(folder / "bits.csv", {"y_xrm": whole_number, "a_xrm": whole_number})
    return Bits(*(np.array(columns[name], np.int64) for name in ("y_xrm", "a_xrm")))
