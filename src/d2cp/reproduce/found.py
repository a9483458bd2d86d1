"""Cells that train nothing: how right the pseudo labels are, and what the mined concept changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from d2cp.core.arrays import Ints, Rows
from d2cp.core.device import process_state
from d2cp.core.rng import numpy_generator
from d2cp.disentangle.concept_files import load_model
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.concept_pictures import encode
from d2cp.disentangle.sampling import draw, swapped
from d2cp.errors import DataError
from d2cp.evaluate.result import group_name
from d2cp.mine import Mined, apply
from d2cp.mine.mined_files import load_mined
from d2cp.reproduce.cells import Cell
from d2cp.reproduce.shared import Shared

SWAPPED = 64  # validation images that are drawn again


def recall_cell(cell: Cell, shared: Shared, folder: Path) -> dict[str, Any]:
    """Recall of the pseudo attribute by true group, on every split."""
    table, summary = shared.context.table, shared.found.summary
    if table.a is None:
        raise DataError(
            f"{table.name!r} has no true attributes to compare the pseudo labels with",
            expected="a data set with an attribute column",
        )
    return {
        "lines": [
            {
                "split": split,
                "key": group,
                "name": group_name(group, "true", table.class_names, table.attribute_names),
                "figures": {"recall": value},
            }
            for split, by_group in summary["recall"].items()
            for group, value in by_group.items()
        ],
        "verdict": summary["verdict"],
    }


def concepts_cell(cell: Cell, shared: Shared, folder: Path) -> dict[str, Any]:
    """The mined concepts of validation images taken from donors, drawn, and read again."""
    context, run = shared.context, shared.context.run
    device = process_state().device
    model = load_model(run.artifact("disentangle")).to(device)
    mined = load_mined(run.artifact("mine"))
    store = context.images(cell.config.disentangle.size)
    chosen, donors = pairs(context.blind.rows("val"), shared.found.pseudo, cell.seed)
    subjects = encode(model, store, chosen, cell.seed)
    lenders = encode(model, store, donors, cell.seed)
    moved = swapped(subjects.scalars, lenders.scalars, list(mined.concepts))
    own, wanted = shared.found.pseudo[chosen], shared.found.pseudo[donors]
    drawn = draw(model, subjects.scalars, subjects.noise)
    changed = draw(model, moved, subjects.noise)
    shares = {
        "swapped": (
            "swapped: read as the donor's",
            _reads(model, mined, changed, chosen) == wanted,
        ),
        "kept": ("not swapped: read as its own", _reads(model, mined, drawn, chosen) == own),
    }
    errors = {"decoded": ("pixel error, decoded", drawn)}
    if model.space.quantises:
        plain = draw(model, subjects.scalars, subjects.noise, quantise=False)
        errors = {
            "decoded": ("pixel error, decoded without the codebook", plain),
            "quantised": ("pixel error, decoded from the codebook", drawn),
        }
    lines = [
        {"split": "val", "key": key, "name": name, "figures": {"share": float(np.mean(right))}}
        for key, (name, right) in shares.items()
    ]
    for key, (name, images) in errors.items():
        error = float((images - subjects.images).abs().mean() / 2)
        lines.append({"split": "val", "key": key, "name": name, "figures": {"share": error}})
    shutil.copyfile(run.file("mine", "pictures/swap.png"), folder / "swap.png")
    return {
        "lines": lines,
        "images": len(chosen),
        "pictures": [{"file": "swap.png", "title": f"Concept swap, seed {cell.seed}"}],
    }


def pairs(rows: Rows, pseudo: Ints, seed: int) -> tuple[Rows, Rows]:
    """Images, and for each a donor of another pseudo value; both values in equal numbers."""
    shuffled = numpy_generator(seed, "reproduce/swap").permutation(rows)
    values = np.unique(pseudo[shuffled])
    if len(values) < 2:
        raise DataError(
            "all validation images have one pseudo value: there is no donor for a swap",
            expected="two values among the validation images",
        )
    chosen, donors = [], []
    for value in values:
        here, other = shuffled[pseudo[shuffled] == value], shuffled[pseudo[shuffled] != value]
        count = min(SWAPPED // len(values), len(here), len(other))
        chosen.append(here[:count])
        donors.append(other[:count])
    return np.concatenate(chosen), np.concatenate(donors)


@torch.no_grad()
def _reads(model: ConceptModel, mined: Mined, images: Tensor, rows: Rows) -> Ints:
    """The pseudo value that mining's own rule reads off drawn images."""
    scalars = model.scalars(images, model.guided_scalars(images, rows))
    tokens = model.concept_tokens(scalars).cpu().numpy()
    return apply(mined, tokens, scalars.cpu().numpy())[0]
