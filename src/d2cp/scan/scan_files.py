"""A scan on disk: findings.json to read, scores.csv for scripts, arrays in scan.safetensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from d2cp.core.files import write_bytes, write_csv, write_json
from d2cp.core.records import FindingRecord, FoundRecord
from d2cp.core.typed_json import read_typed
from d2cp.data.table import SPLIT_NAMES, Table
from d2cp.errors import RunError
from d2cp.scan.bank import Bank
from d2cp.scan.finding import Finding, Reader, Scan

FINDINGS, SCORES, ARRAYS = "findings.json", "scores.csv", "scan.safetensors"
AGAIN = "delete the run's folder `scan` and scan again"


def save_scan(found: Scan, table: Table, folder: Path) -> None:
    from safetensors.numpy import save

    arrays = {f"bank/{k}": v for k, v in found.bank.arrays().items()}
    arrays |= {f"table/{k}": v for k, v in found.table_features.items()}
    for f in found.findings:
        own: dict[str, Any] = {"value": f.value, "score": f.score, "scores": f.scores}
        own["intercept"] = f.reader.intercept
        for part in ("weight", "centre", "scale"):
            own |= {f"{part}/{lens}": a for lens, a in getattr(f.reader, part).items()}
        arrays |= {f"finding/{f.rank}/{k}": v for k, v in own.items()}
    contiguous = {k: np.ascontiguousarray(v) for k, v in arrays.items()}
    write_bytes(folder / ARRAYS, save(contiguous))
    write_json(
        folder / FINDINGS,
        {
            "outcome": found.outcome,
            "size": found.size,
            "notes": list(found.notes),
            "lens_accuracy": found.lens_accuracy,
            "findings": [f.to_dict() for f in found.findings],
        },
    )
    write_scores(found, table, folder / SCORES)


def write_scores(found: Scan, table: Table, path: Path) -> None:
    """One line an image and finding: image,split,class,finding,value,score."""
    names, splits = table.class_names, [SPLIT_NAMES[s] for s in table.split]
    write_csv(
        path,
        ("image", "split", "class", "finding", "value", "score"),
        (
            (image, split, names[y], f.rank, int(value), f"{score:.6g}")
            for f in found.findings
            for image, split, y, value, score in zip(
                table.ids, splits, table.y, f.value, f.score, strict=True
            )
        ),
    )


def load_scan(folder: Path) -> Scan:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    plain = read_typed(folder / FINDINGS, FoundRecord, remedy=AGAIN)
    try:
        arrays = load((folder / ARRAYS).read_bytes())
        return Scan(
            findings=tuple(_finding(values, arrays) for values in plain["findings"]),
            bank=Bank.from_arrays(_below(arrays, "bank/")),
            size=plain["size"],
            table_features=_below(arrays, "table/"),
            lens_accuracy=plain["lens_accuracy"],
            notes=tuple(plain["notes"]),
        )
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise RunError(
            f"{folder}: the scan cannot be read ({type(error).__name__}: {error})",
            expected=f"{FINDINGS} and {ARRAYS}, written together by this version",
            remedy=AGAIN,
        ) from error


def _below(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _finding(values: FindingRecord, arrays: dict[str, Any]) -> Finding:
    own = _below(arrays, f"finding/{values['rank']}/")
    parts = {name: _below(own, f"{name}/") for name in ("weight", "centre", "scale")}
    plain: dict[str, Any] = {k: v for k, v in values.items() if k in FindingRecord.__annotations__}
    tuples = {k: tuple(plain[k]) for k in ("lenses", "value_names", "reasons")}
    value, score, scores = own["value"], own["score"], own["scores"]
    if value.ndim != 1 or score.shape != value.shape or scores.shape[:1] != value.shape:
        raise ValueError(f"arrays of {value.shape}, {score.shape} and {scores.shape}")
    if not np.issubdtype(value.dtype, np.integer) or np.any(value >= len(plain["value_names"])):
        raise ValueError("a value without a name")
    return Finding(
        **{**plain, **tuples},
        value=value,
        score=score,
        scores=scores,
        reader=Reader(intercept=own["intercept"], **parts),
    )
