"""The search on frozen features: what every draw answers for images it was not trained on chooses
one, and is kept as evidence of how good such a choice is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from torch import Tensor

from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Floats, Ints
from d2cp.core.files import write_bytes
from d2cp.debias.candidates import best, chosen_by_others, halves, scores
from d2cp.debias.cross_fit import Fold, HeldOut, held_out, joined
from d2cp.debias.labels import Labels, against, sides
from d2cp.debias.settings_search import Draw
from d2cp.debias.transplants import Transplants
from d2cp.errors import RunError

FILE = "evidence.safetensors"


@dataclass(frozen=True)
class Evidence:
    """Of plain training and of the method, how often each image of `rows` is answered right by what
    other images choose."""

    rows: Ints
    against: Floats  # how surely each goes against the finding
    erm: Floats
    d2cp: Floats


def judged_by(labels: Labels, config: DebiasConfig, more: Transplants | None = None) -> Floats:
    """How surely every row goes against the finding; not at all for a training that knows of
    none, which is judged by its classes."""
    if not config.use_pseudo:
        return np.zeros(len(labels.y))
    return against(labels) if more is None else more.against(labels)


def search_held_out(
    features: Tensor,
    labels: Labels,
    folds: Sequence[Fold],
    settings: Sequence[DebiasConfig],
    names: Sequence[str],
    *,
    seed: int,
    step: Callable[[], None],
    more: Transplants | None = None,
) -> tuple[HeldOut, DebiasConfig, list[Draw]]:
    """What was answered; the best draw with the number of steps at which it was best; what was
    tried, with the accuracy that chose. Images of `more` that were not trained on choose, too."""
    if more is not None:
        count = len(labels.y)
        folds = [replace(fold, held=more.held(fold.held, count)) for fold in folds]
    found = held_out(features, labels, folds, settings, seed=seed, step=step, more=more)
    y = joined(labels, more).y[found.rows]
    right, side = found.answers == y, judged_by(labels, settings[0], more)[found.rows]
    draw, state = best(right, y, side)
    steps = int(found.steps[state])
    reached = scores(right, y, side).max(axis=1)
    draws = [
        Draw({name: getattr(config, name) for name in names}, (float(score),))
        for config, score in zip(settings, reached, strict=True)
    ]
    return found, replace(settings[draw], max_steps=steps, evaluate_every=steps), draws


def evidence(
    erm: HeldOut, d2cp: HeldOut, labels: Labels, more: Transplants | None = None
) -> Evidence:
    """Of two searches that answered for the same images, and only for images as they are: those of
    `more` choose with the image that they are made of, and say nothing of how good a choice is.
    The control's search may be of one candidate, which has then been chosen before; that favours it
    a little."""
    rows, side, y = erm.rows, against(labels)[erm.rows], labels.y[erm.rows]
    choosing = halves(sides(labels)[rows])
    everywhere = d2cp.rows if more is None else more.origin(d2cp.rows, len(labels.y))
    place = np.zeros(len(labels.y), np.int64)
    place[rows] = np.arange(len(rows))
    answered = chosen_by_others(
        d2cp.answers == joined(labels, more).y[d2cp.rows],
        y[place[everywhere]],
        (against(labels) if more is None else more.against(labels))[d2cp.rows],
        [half[place[everywhere]] for half in choosing],
    )
    return Evidence(
        rows,
        side,
        chosen_by_others(erm.answers == y, y, np.zeros(len(y)), choosing),
        answered[d2cp.rows < len(labels.y)],
    )


def save_evidence(folder: Path, found: Evidence) -> None:
    write_bytes(folder / FILE, save(vars(found)))


def load_evidence(folder: Path) -> Evidence | None:
    """None where a stage has none: prompts are not trained again and again."""
    if not (folder / FILE).is_file():
        return None
    try:
        return Evidence(**load((folder / FILE).read_bytes()))
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        raise RunError(
            f"{folder / FILE} cannot be read: {error}",
            remedy=f"delete {folder} and run again: the other stages are kept",
        ) from error
