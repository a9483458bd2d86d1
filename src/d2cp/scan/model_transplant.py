"""The transplant test on a model: does ITS answer change when only the cue is put into a picture?

Recipients are images that the finding puts on another side than the cue's, donors images of which
it is sure. The share that the model then answers with the cue's class, less the share with the
control, is its reliance on the finding, by intervention: nothing else differs between the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from d2cp.core.rng import numpy_generator
from d2cp.data.store import ImageStore
from d2cp.scan.bank import read
from d2cp.scan.batched import Ints
from d2cp.scan.changes import CHANGES, WINDOWS
from d2cp.scan.evidence import certainty
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.transplant import (
    lay,
    random_windows,
    telling_windows,
    window_of,
)

PAIRS = 64
BATCH = 32
LEAST = 8
"""Recipients below which nothing is said of a model."""
_Z = 1.959964

Corners = list[tuple[int, int]]
Answer = Callable[[Tensor], Mapping[str, Ints]]
"""Images [B, 3, S, S] in [0, 1] → predicted classes, by the model's name."""


@dataclass(frozen=True)
class Case:
    """Who gets the cue from whom, and who is the control."""

    lens: str
    side: int
    recipients: Ints
    donors: Ints
    friends: Ints
    """Donors of the control, on the recipients' own side; a window has none."""


def case_of(finding: Finding, rows: Ints, seed: int) -> Case | None:
    """Pairs among `rows`; None where the cue is not in the pixels or was not tested."""
    tested = finding.evidence.get("transplant", {})
    if finding.lens not in WINDOWS and finding.lens not in CHANGES:
        return None
    if not tested.get("pairs"):
        return None
    side, value = int(tested["towards"]), finding.value[rows]
    theirs, ours = rows[value == side], rows[value != side]
    if len(theirs) < 2 or len(ours) < LEAST:
        return None
    sure = certainty(finding.scores[theirs], finding.threshold)
    surer = theirs[np.argsort(-sure, kind="stable")[: max(1, len(theirs) // 2)]]
    draw = numpy_generator(seed, "scan/model", finding.rank)
    recipients = draw.permutation(ours)[:PAIRS]
    donors, friends = (draw.choice(pool, len(recipients)) for pool in (surer, ours))
    return Case(finding.lens, side, recipients, donors, friends)


def transplanted(
    case: Case,
    found: Scan,
    finding: Finding,
    seen: ImageStore,
    part: slice,
    draw: np.random.Generator,
) -> tuple[Tensor, Tensor]:
    """Recipients with the cue, and with the control, as `seen` by the model; windows are chosen in
    what it sees of the donors, at the size of the scan."""
    plain, given = read(seen, case.recipients[part]), read(seen, case.donors[part])
    if case.lens not in WINDOWS:
        change = CHANGES[case.lens]
        friends = read(seen, case.friends[part])
        return change(plain, given).clamp(0, 1), change(plain, friends).clamp(0, 1)
    size = (found.size, found.size)
    small = F.interpolate(given, size, mode="bilinear", antialias=True).clamp(0, 1)
    telling = telling_windows(found.bank, finding.reader, small, case.side)
    both = (telling, random_windows(len(small), small.shape[-1], draw))
    cue, control = (lay(case.lens, plain, given, scaled(c, small, plain)) for c in both)
    return cue, control


def scaled(corners: Corners, small: Tensor, large: Tensor) -> Corners:
    """The same places in pictures of another size."""
    ratio, side = large.shape[-1] / small.shape[-1], large.shape[-1]
    height, width = window_of(side)
    return [
        (min(round(top * ratio), side - height), min(round(left * ratio), side - width))
        for top, left in corners
    ]


def model_transplants(
    found: Scan,
    finding: Finding,
    seen: ImageStore,
    rows: Ints,
    before: Mapping[str, Ints],
    answer: Answer,
    seed: int,
) -> dict[str, Any] | None:
    """For every model that `answer` knows, shares of recipients that it answers with the cue's
    class once the cue, or the control, is put in; among those it does not answer so anyway:
    `before` are its predictions of the table's rows as they are."""
    case = case_of(finding, rows, seed)
    if case is None:
        return None
    draw = numpy_generator(seed, "scan/model/control", finding.rank)
    over: dict[str, list[Any]] = {}
    for start in range(0, len(case.recipients), BATCH):
        part = slice(start, start + BATCH)
        made = transplanted(case, found, finding, seen, part, draw)
        with torch.no_grad():
            answers = [answer(images) for images in made]
        for name in answers[0]:
            cue, control = (a[name] == case.side for a in answers)
            others = before[name][case.recipients[part]] != case.side
            over.setdefault(name, []).append(np.stack([cue, control], axis=1)[others])
    models = {name: _rates(np.concatenate(parts)) for name, parts in over.items()}
    return {"pairs": len(case.recipients), "towards": case.side, **models}


def _rates(moved: Any) -> dict[str, Any]:
    """`moved` [n, 2]: gone over with the cue, with the control."""
    n = len(moved)
    if n < LEAST:
        return {"images": n, "flips": None, "control": None, "gap": None, "interval": None}
    flips, control = (float(share) for share in moved.mean(axis=0))
    difference = moved[:, 0].astype(float) - moved[:, 1]
    # One image more on either side keeps the interval open where nothing moved.
    spread = _Z * math.sqrt((float(difference.var()) * n + 1) / (n + 1) / n)
    gap = flips - control
    interval = [max(-1.0, gap - spread), min(1.0, gap + spread)]
    return {"images": n, "flips": flips, "control": control, "gap": gap, "interval": interval}
