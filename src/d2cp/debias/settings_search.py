"""A small random search on frozen features: a draw takes seconds, a wrong rate costs ten points.

Every draw is one training; the one whose kept state validation likes best is taken. The settings
as given are always among the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from d2cp.config.debias import READ_OUTS, DebiasConfig
from d2cp.core.rng import numpy_generator
from d2cp.debias.loop import Score
from d2cp.debias.train import Trained

RATES = {  # powers of ten
    "lr": (-2.5, -1.0),
    "weight_decay": (-2.0, 0.0),
    "eta": (-3.0, -1.5),
    "spurious_decay": (-3.0, -0.3),
    "class_decay": (-2.5, 0.0),
}
HEADS = (1, 4)  # spurious_heads, the second one left out
ALPHA = (0.8, 2.0)
XRM = (0.0, 1.0)
PLAIN = ("lr", "weight_decay")  # what plain training has
SOLVED = ("lr", "weight_decay", "eta")  # W^a is solved: its settings are not drawn
SOLVED_CLASS = ("class_decay", "read_out", "weight_xrm_y")  # W^y is solved, too
SOLVED_PLAIN = ("class_decay",)  # plain training's head
ALL = ("lr", "weight_decay", "alpha", "eta", "spurious_heads", "spurious_decay")


def drawn_names(config: DebiasConfig) -> tuple[str, ...]:
    """What a search of `config` draws."""
    if config.solves_class:
        return SOLVED_CLASS if config.use_pseudo else SOLVED_PLAIN
    if not config.use_pseudo:
        return PLAIN
    return SOLVED if config.dual_branch and config.spurious_fit == "solved" else ALL


@dataclass(frozen=True)
class Draw:
    """One trial of the search, as the artifact records it."""

    settings: dict[str, float | str]
    score: Score | None  # of the state it kept, by the selection rule

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def draw_settings(
    config: DebiasConfig, count: int, names: Sequence[str], *, seed: int
) -> list[DebiasConfig]:
    """`config` itself and `count` random draws of the named fields.

    A field's values do not depend on which other fields are drawn: control and method meet the
    same rates."""
    drawn = [config]
    for index in range(count):
        values = {}
        for name in names:
            values[name] = _draw(name, numpy_generator(seed, f"debias/search/{name}", index))
        drawn.append(replace(config, **values))  # type: ignore[arg-type]
    return drawn


def _draw(name: str, generator: np.random.Generator) -> float | str:
    if name == "read_out":
        return READ_OUTS[int(generator.integers(len(READ_OUTS)))]
    if name == "weight_xrm_y":
        return generator.uniform(*XRM)
    if name == "alpha":
        return generator.uniform(*ALPHA)
    if name == "spurious_heads":
        return int(generator.integers(*HEADS))
    return float(10 ** generator.uniform(*RATES[name]))


def search(
    settings: Sequence[DebiasConfig],
    names: Sequence[str],
    train: Callable[[DebiasConfig], Trained],
    *,
    step: Callable[[], None] = lambda: None,
) -> tuple[Trained, list[Draw]]:
    """The training that validation likes best (the first of equals), and what was tried; `step` is
    called after every draw."""
    best: Trained | None = None
    draws = []
    for config in settings:
        trained = train(config)
        score = trained.fitted.best_score
        draws.append(Draw({name: getattr(config, name) for name in names}, score))
        before = None if best is None else best.fitted.best_score
        if best is None or (score is not None and before is not None and score > before):
            best = trained
        step()
    assert best is not None
    return best, draws
