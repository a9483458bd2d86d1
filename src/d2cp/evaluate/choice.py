"""Do no harm: which of the two classifiers a run recommends, by evidence of its own.

Only mined groups and images of training and validation are looked at, each answered by a model that
was not trained on it; true attributes and test images have no part in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from d2cp.core.arrays import Floats, Ints
from d2cp.core.records import ChoiceRecord
from d2cp.core.run_directory import RunDirectory
from d2cp.debias.sides import classes_of, side_weights
from d2cp.evaluate.paired import Gain, paired_gain

FILE = "choice.json"
Shipped = Literal["d2cp", "erm"]
SURE = 0.9  # share of what the images leave open in which the worst group gains
LIKELY, VERY_SURE = 0.75, 0.95
"""The same, where images as they are leave it open and exchanged ones speak, too."""
LITTLE = 0.05  # plain training that loses less than this against the finding hardly uses it


@dataclass(frozen=True)
class Standing:
    """A classifier on suspected groups."""

    worst_group: float
    group_mean: float  # over groups, not images
    error: float  # standard error of the worst group's accuracy

    @classmethod
    def of(cls, right: Floats, y: Ints, against: Floats) -> Standing:
        parts = side_weights(y, against)
        accuracy = parts @ right
        least = int(accuracy.argmin())
        error = standard_error(accuracy, 1 / (parts**2).sum(axis=1))[least]
        return cls(float(accuracy[least]), float(accuracy.mean()), float(error))


@dataclass(frozen=True)
class Lean:
    """How plain training fares where a class shows its usual value, and where it does not."""

    usual: float  # accuracy, mean over classes
    unusual: float
    error: float  # standard error of the difference

    @property
    def gap(self) -> float:
        return self.usual - self.unusual

    @property
    def little(self) -> bool:
        return self.gap < LITTLE


@dataclass(frozen=True)
class Choice:
    shipped: Shipped
    reason: str
    erm: Standing
    d2cp: Standing
    gain: Gain
    lean: Lean | None  # None where no class shows two values on validation
    exchanged: Gain | None = None  # the same, where images are shown with the cue exchanged, too

    @property
    def sentences(self) -> list[str]:
        said = [self.reason]
        if self.lean is not None and self.lean.little:
            said.append(
                "Your backbone hardly reads this cue: plain training is right on "
                f"{100 * self.lean.unusual:.1f}% of the images that go against the "
                f"finding and on {100 * self.lean.usual:.1f}% of those that go with it "
                f"(standard error of the difference {100 * self.lean.error:.1f})."
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        whole: dict[str, Any] = {
            "model": self.shipped,
            "sentences": self.sentences,
            "erm": vars(self.erm),
            "d2cp": vars(self.d2cp),
            "gain": vars(self.gain),
        }
        if self.exchanged is not None:
            whole["exchanged"] = vars(self.exchanged)
        if self.lean is not None:
            whole["lean"] = {**vars(self.lean), "little": self.lean.little}
        return whole


def read_choice(run: RunDirectory) -> ChoiceRecord | None:
    """What a run recommends; None where it has had no control to compare with."""
    if not run.has("evaluate") or FILE not in run.manifest("evaluate")["files"]:
        return None
    return run.read("evaluate", FILE, ChoiceRecord)


def standard_error(accuracy: Floats, n: Floats) -> Floats:
    """Of a share; Agresti and Coull's two successes and two failures keep it above 0."""
    share = (accuracy * n + 2) / (n + 4)
    error: Floats = np.sqrt(share * (1 - share) / (n + 4))
    return error


def lean(right: Floats, y: Ints, against: Floats) -> Lean | None:
    """Mean over the classes that have images with and against the finding."""
    accuracies, variances = [], []
    for one in classes_of(y, against):
        if one.sides == 2:
            parts = side_weights(np.zeros(len(one.rows), np.int64), one.against)
            shares = parts @ right[one.rows]
            accuracies.append(shares)
            variances.append((standard_error(shares, 1 / (parts**2).sum(axis=1)) ** 2).sum())
    if not accuracies:
        return None
    with_it, unlike = np.mean(accuracies, axis=0)
    return Lean(float(with_it), float(unlike), float(np.sqrt(sum(variances)) / len(variances)))


def choose(
    erm: Floats,
    d2cp: Floats,
    y: Ints,
    against: Floats,
    images: str = "validation images",
    exchanged: Gain | None = None,
) -> Choice:
    """`erm` and `d2cp` say of images that neither was trained on how often each is answered right;
    `against` how surely each goes against the finding; `exchanged` is the gain where images are
    shown with the finding's cue exchanged, too.

    D2CP is shipped where plain training leans on the finding and D2CP's worst group is surely above
    plain training's: a tie goes to plain training, which needs no finding, and a gain where plain
    training does not use the cue is a gain by other images in the balance, not by the repair. Few
    images that go against a finding cannot be sure: where they say that it is likely, and exchanged
    ones, which are many, that it is very sure, that is enough.
    """
    before, after = Standing.of(erm, y, against), Standing.of(d2cp, y, against)
    gain = paired_gain(erm, d2cp, y, against)
    figures = (
        f"worst suspected group {100 * after.worst_group:.1f}% beside "
        f"{100 * before.worst_group:.1f}% of plain training ({gain}), mean over groups "
        f"{100 * after.group_mean:.1f}% beside {100 * before.group_mean:.1f}%; "
        f"{len(y):,} {images}"
    )
    if exchanged is not None:
        figures += f"; with the cue exchanged in them, too: {exchanged}"
    leaning = lean(erm, y, against)
    nothing = leaning is not None and leaning.little
    better = gain.surely >= SURE or (
        exchanged is not None and gain.surely >= LIKELY and exchanged.surely >= VERY_SURE
    )
    shipped: Shipped = "d2cp" if better and not nothing else "erm"
    if shipped == "d2cp":
        reason = "D2CP is recommended: "
    elif nothing and better:
        reason = "Plain training is recommended: it hardly leans on the finding; with D2CP, "
    elif gain.high < 0:
        reason = "Plain training is recommended; D2CP does harm here, "
    else:
        reason = "Plain training is recommended; D2CP is not surely better here, "
    return Choice(shipped, f"{reason}{figures}.", before, after, gain, leaning, exchanged)
