"""The search on frozen features: what every draw answers for images it was not trained on chooses
one, and is kept as evidence of how good such a choice is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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


NOTHING: Floats = np.zeros(0)
NO_ROWS: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Evidence:
    """Of plain training and of the method, how often each image of `rows` is answered right by what
    other images choose; and how often images of their class's usual value, `exchanged`, would be
    with the other one: right as they are, and what exchanging the cue does beyond the control."""

    rows: Ints
    against: Floats  # how surely each goes against the finding
    erm: Floats
    d2cp: Floats
    exchanged: Ints = field(default_factory=NO_ROWS.copy)
    erm_exchanged: Floats = field(default_factory=NOTHING.copy)
    d2cp_exchanged: Floats = field(default_factory=NOTHING.copy)


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
    tried, with the accuracy that chose. Exchanged images that were not trained on choose, too."""
    whole, answering = joined(labels, more), folds
    if more is not None:
        count = len(labels.y)
        answering = [replace(fold, held=more.held(fold.held, count)) for fold in folds]
    found = held_out(features, labels, answering, settings, seed=seed, step=step, more=more)
    y, side = whole.y[found.rows], judged_by(labels, settings[0], more)[found.rows]
    judges = np.ones(len(found.rows), dtype=bool)
    if more is not None:
        judges = ~more.is_control(found.rows, len(labels.y))
    right = (found.answers == y)[..., judges]
    y, side = y[judges], side[judges]
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
    """Of two searches that answered for the same images. Exchanged ones choose with the image that
    they are made of, controls do not choose. The control's search may be of one candidate, which
    has then been chosen before; that favours it a little."""
    count, rows = len(labels.y), d2cp.rows
    own = rows[rows < count]
    origin = rows if more is None else more.origin(rows, count)
    y = labels.y[origin]
    place = np.zeros(count, np.int64)
    place[own] = np.arange(len(own))
    judges = np.ones(len(rows), dtype=bool) if more is None else ~more.is_control(rows, count)
    choosing = [half[place[origin]] & judges for half in halves(sides(labels)[own])]
    side = (against(labels) if more is None else more.against(labels))[rows]
    plainly = chosen_by_others(erm.answers == y, y, np.zeros(len(y)), choosing)
    method = chosen_by_others(d2cp.answers == y, y, side, choosing)
    real = rows < count
    found = Evidence(own, side[real], plainly[real], method[real])
    if more is None:
        return found
    where = {int(row): i for i, row in enumerate(rows)}
    turned = [r for r in rows[~real & judges] if side[where[int(r)]] == 1]
    exchanged = np.array([where[int(r)] for r in turned], dtype=np.int64)
    control = np.array([where[int(r) + len(more.rows)] for r in turned], dtype=np.int64)
    image = np.array([where[int(r)] for r in origin[exchanged]], dtype=np.int64)

    def shown(right: Floats) -> Floats:
        return right[image] + right[exchanged] - right[control]

    return replace(
        found,
        exchanged=origin[exchanged],
        erm_exchanged=shown(plainly),
        d2cp_exchanged=shown(method),
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
