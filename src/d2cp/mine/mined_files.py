"""A finding on disk: arrays in `mined.safetensors`, everything readable in `mined.json`."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from d2cp.config.mine import MineConfig
from d2cp.config.strict import build
from d2cp.core.files import read_json, write_bytes, write_json
from d2cp.errors import RunError
from d2cp.mine.mined import Mined
from d2cp.mine.mixture import Clusters
from d2cp.mine.rule import Rule, ScalarParts
from d2cp.mine.verdict import Verdict

ARRAYS = ("weight", "bias", "prototypes", "scores", "contrast")


def save_mined(mined: Mined, folder: Path) -> None:
    from safetensors.numpy import save

    rule = mined.rule
    arrays = {name: getattr(mined, name) for name in ARRAYS}
    arrays |= {"means": rule.means, "directions": rule.directions, "rule_bias": rule.bias}
    plain: dict[str, Any] = {
        "config": dataclasses.asdict(mined.config),
        "seed": mined.seed,
        "concepts": mined.concepts,
        "per_class": mined.per_class,
        "top_m": mined.top_m,
        "l2": mined.l2,
        "values": mined.values,
        "threshold": rule.threshold,
        "contrast": {str(k): float(mined.contrast[k]) for k in mined.concepts},
        "verdict": mined.verdict.to_dict(),
        "warnings": mined.warnings,
    }
    if rule.clusters is not None:
        arrays |= {"centres": rule.clusters.centres, "cluster_weights": rule.clusters.weights}
        plain["clusters"] = {"variance": rule.clusters.variance, "bic": rule.clusters.bic}
    if rule.scalars is not None:
        parts = rule.scalars
        arrays["scalars"] = np.stack([parts.means, parts.stds, parts.signs])
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    write_bytes(folder / "mined.safetensors", save(contiguous))
    write_json(folder / "mined.json", plain)


def load_mined(folder: Path) -> Mined:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    plain = read_json(folder / "mined.json")
    try:
        arrays = load((folder / "mined.safetensors").read_bytes())
        clusters = scalars = None
        if "clusters" in plain:
            both = arrays["centres"], arrays["cluster_weights"]
            clusters = Clusters(*both, plain["clusters"]["variance"], plain["clusters"]["bic"])
        if "scalars" in arrays:
            scalars = ScalarParts(*arrays["scalars"])
        concepts = tuple(int(k) for k in plain["concepts"])
        rule = Rule(
            arrays["means"],
            arrays["directions"],
            arrays["rule_bias"],
            concepts,
            plain["threshold"],
            clusters,
            scalars,
        )
        return Mined(
            config=build(MineConfig, plain["config"]),
            seed=plain["seed"],
            rule=rule,
            per_class=tuple(tuple(row) for row in plain["per_class"]),
            top_m=plain["top_m"],
            l2=plain["l2"],
            verdict=Verdict.from_dict(plain["verdict"]),
            warnings=tuple(plain["warnings"]),
            **{name: arrays[name] for name in ARRAYS},
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{folder}: the mined concepts cannot be read ({type(error).__name__}: {error})",
            expected="mined.json and mined.safetensors, written together by this version",
            remedy="delete the folder and run again: the concept model is kept",
        ) from error
