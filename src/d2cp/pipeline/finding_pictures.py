"""Which images show a finding best, and the PNG files made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from d2cp.core.arrays import Ints
from d2cp.core.rng import numpy_generator
from d2cp.core.text import visible
from d2cp.disentangle.canvas import save_png
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.concept_pictures import (
    attention_picture,
    encode,
    extremes_picture,
    name_concepts,
    swap_picture,
    traversal_picture,
)
from d2cp.disentangle.edits import edit, edit_picture
from d2cp.mine import Mined
from d2cp.mine.histogram import histogram_picture
from d2cp.pipeline.context import Context

PER_CELL = 2
MAX_SUBJECTS = 8
MAX_CONCEPTS = 3


@dataclass(frozen=True)
class Movable:
    """Something that can be moved in a photo: concepts, and the value of every row."""

    name: str
    file: str
    concepts: tuple[int, ...]
    value: Ints
    value_names: tuple[str, ...] = ()


def draw_pictures(
    context: Context,
    model: ConceptModel,
    mined: Mined,
    scalars: NDArray[np.float32],
    score: NDArray[np.float64],
    pseudo: Ints,
    folder: Path,
    findings: Sequence[Movable] = (),
) -> list[dict[str, Any]]:
    """Write `pictures/*.png`; returns what each shows, for the summary and the report. `findings`
    are a scan's, drawn as edits of the photos beside the mined concepts."""
    table, config = context.blind, context.config
    store = context.images(config.disentangle.size)
    train = table.rows("train")
    concepts = list(mined.concepts[:MAX_CONCEPTS])
    named = name_concepts(concepts)
    chosen, donors = subjects_and_donors(table.y[train], pseudo[train], mined.values, config.seed)
    subjects = encode(model, store, train[chosen], config.seed)
    lenders = encode(model, store, train[donors], config.seed)
    labels = [str(table.class_names[table.y[row]]) for row in train[chosen]]
    listed: list[dict[str, Any]] = []

    def add(image: Image.Image, kind: str, concept: int | None, title: str, caption: str) -> None:
        suffix = "" if concept is None else f"-{concept}"
        name = f"pictures/{kind}{suffix}.png"
        save_png(image, folder / name)
        about = "edit" if kind.startswith("edit") else kind
        entry = {"file": name, "kind": about, "title": title, "caption": caption}
        listed.append(entry if concept is None else {**entry, "concept": concept})

    own = Movable(named, "edit", tuple(concepts), pseudo)
    same = any(set(f.concepts) == set(concepts) for f in findings)
    for moved in (*findings, *(() if same else (own,))):
        add(
            _edits(context, model, moved, scalars),
            moved.file,
            None,
            f"The photo itself, with {moved.name} moved",
            "Compare the first two columns. The third shows the difference alone, enlarged: what "
            "is coloured there is what the model takes this for.",
        )
    add(
        swap_picture(model, subjects, lenders, concepts, labels),
        "swap",
        None,
        f"Swapping {named}",
        "Compare the second and the third column: what changes is what the mined concept means; "
        "what stays is what it does not touch.",
    )
    for concept in concepts:
        add(
            traversal_picture(model, subjects, concept, scalars[train], labels),
            "traversal",
            concept,
            f"Concept {concept} from low to high",
            "Read each row from left to right: only this concept grows.",
        )
        add(
            extremes_picture(
                store,
                train,
                table.y[train],
                scalars[train, concept],
                table.class_names,
                f"Real images at both ends of concept {concept}",
            ),
            "extremes",
            concept,
            f"Real images at both ends of concept {concept}",
            "Within a class, the two halves differ in the shortcut and not in the class.",
        )
    add(
        attention_picture(model, subjects, concepts, labels),
        "attention",
        None,
        "Where the concepts act",
        "Warm places attend to the concept's token more than others do.",
    )
    add(
        histogram_picture(score[train], table.y[train], table.class_names, mined.threshold),
        "histogram",
        None,
        "Score of the mined concepts",
        "A clear gap at the threshold means that few images are in doubt.",
    )
    return listed


def _edits(
    context: Context, model: ConceptModel, moved: Movable, scalars: NDArray[np.float32]
) -> Image.Image:
    """Photos of every class and value, moved to the mean of their class with another value."""
    table, config = context.blind, context.config
    train = table.rows("train")
    y, value = table.y[train], moved.value[train]
    chosen, donors = subjects_and_donors(y, value, int(value.max()) + 1, config.seed)
    store = context.images(config.disentangle.size)
    subjects = encode(model, store, train[chosen], config.seed)
    columns = list(moved.concepts)
    target = subjects.scalars.clone()
    for i, donor in enumerate(donors):
        cell = train[(y == y[donor]) & (value == value[donor])]
        target[i, columns] = torch.from_numpy(scalars[cell][:, columns].mean(0)).to(target)
    change = edit(model, subjects.images, subjects.scalars, target, subjects.rows, config.seed)
    labels = [
        f"{visible(table.class_names[y[one]])}{_moved_words(moved, value[one], value[donor])}"
        for one, donor in zip(chosen, donors, strict=True)
    ]
    return edit_picture(subjects.images, change, labels, moved.name)


def _moved_words(moved: Movable, before: int, after: int) -> str:
    if not moved.value_names:
        return ""
    return f": {moved.value_names[before]}, then {moved.value_names[after]}"


def subjects_and_donors(y: Ints, pseudo: Ints, values: int, seed: int) -> tuple[Ints, Ints]:
    """Images of every (class, value) cell in turn, each with a donor of its own class and of
    another value where there is one, so that a swap changes the value and nothing else."""
    generator = numpy_generator(seed, "mine/pictures")
    order = generator.permutation(len(y))
    cells: dict[tuple[int, int], list[int]] = {}
    for row in order.tolist():
        cells.setdefault((int(y[row]), int(pseudo[row])), []).append(row)
    names = sorted(cells)
    turns = [
        cells[name][turn] for turn in range(PER_CELL) for name in names if turn < len(cells[name])
    ]
    chosen = sorted(turns[:MAX_SUBJECTS], key=lambda row: (y[row], pseudo[row]))
    donors = []
    for number, row in enumerate(chosen):
        same = [n for n in names if n[0] == y[row] and n[1] != pseudo[row]]
        others = same or [n for n in names if n[1] != pseudo[row]] or names
        pool = cells[others[number % len(others)]]
        donors.append(pool[number % len(pool)])
    return np.array(chosen, dtype=np.int64), np.array(donors, dtype=np.int64)
