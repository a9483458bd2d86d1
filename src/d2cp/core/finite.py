"""A loss that is not a number stops the training, with all that is needed to look into it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from d2cp.core.checkpoint import Checkpointer
from d2cp.errors import TrainingError

NAMED = 8


def to_lower(settings: Mapping[str, float | None], most: Mapping[str, float]) -> str:
    """What to do about it: lower the settings that are beyond `most`, above which training cannot
    work; where none is, the first of them, the learning rate."""
    beyond = [name for name, limit in most.items() if (settings[name] or 0) > limit]
    names = beyond or [next(iter(most))]
    listed = " and ".join(f"{name} (now {settings[name]:g})" for name in names)
    return f"lower {listed}" if beyond else f"lower {listed}: a tenth is a good first try"


def require_finite(
    value: float,
    stage: str,
    step: int,
    rows: Sequence[int],
    checkpointer: Checkpointer | None,
    remedy: str,
) -> None:
    """Raise unless the loss of `step` on these rows of the table is finite."""
    if math.isfinite(value):
        return
    named = ", ".join(str(row) for row in rows[:NAMED])
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    kept = f"; {checkpointer.last_good()}" if checkpointer else ""
    raise TrainingError(
        f"{stage}: the loss is {value} at step {step}, on the images in rows {named}{more} of "
        f"data/table.csv{kept}",
        expected="a finite number",
        remedy=remedy,
    )
