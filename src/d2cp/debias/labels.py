"""What stage 2 may know of each row of a table, and the groups made from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from d2cp.config.debias import DebiasConfig, PseudoSource
from d2cp.core.arrays import Floats, Ints
from d2cp.core.rng import numpy_generator
from d2cp.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Columns over all rows of a table. `true_a` serves the rule `val_true_groups` alone."""

    y: Ints
    classes: int
    train: Ints  # rows
    val: Ints  # rows; may be empty: then the last state is kept
    a: Ints | None = None  # the pseudo label, 0 … attributes-1
    values: int = 2
    shares: Floats | None = None  # [rows, values]: how surely a row has each value
    y_xrm: Ints | None = None  # XRM's bit on y
    a_xrm: Ints | None = None  # XRM's bit on a
    true_a: Ints | None = None

    def pseudo_groups(self) -> Ints:
        """g = A*y + a, the grouping of both branches."""
        return self.values * self.y + _given(self.a, "pseudo labels", "use_pseudo")

    def target_groups(self) -> Ints:
        """gamma^y = 2y + y_xrm."""
        return 2 * self.y + _given(self.y_xrm, "XRM bits on y", "use_xrm")

    def spurious_groups(self) -> Ints:
        """gamma^a = 2a + a_xrm."""
        a = _given(self.a, "pseudo labels", "use_pseudo")
        return 2 * a + _given(self.a_xrm, "XRM bits on the pseudo labels", "use_xrm")


def with_validation(labels: Labels) -> Labels:
    """Validation images join the training images."""
    train = np.concatenate([labels.train, labels.val])
    return replace(labels, train=train, val=labels.val[:0])


def sides(labels: Labels) -> Ints:
    """2y + 1 where an image goes against the finding, else 2y: it has not the value that is the
    most frequent one of its class in training. Two groups a class, however many values there are:
    what is judged by small groups is judged by chance."""
    a = _given(labels.a, "pseudo labels", "use_pseudo")
    against: Ints = (a != usual_values(labels)[labels.y]).astype(np.int64)
    return 2 * labels.y + against


def usual_values(labels: Labels) -> Ints:
    """[classes]: the most frequent value of each in training."""
    a = _given(labels.a, "pseudo labels", "use_pseudo")
    counts = np.zeros((labels.classes, labels.values), np.int64)
    np.add.at(counts, (labels.y[labels.train], a[labels.train]), 1)
    found: Ints = counts.argmax(axis=1)
    return found


def against(labels: Labels) -> Floats:
    """[rows]: how surely each goes against the finding; 0 or 1 where values are taken as is."""
    hard = sides(labels) % 2
    if labels.shares is None:
        return hard.astype(np.float64)
    a = _given(labels.a, "pseudo labels", "use_pseudo")
    usual = np.where(hard == 1, 1 - a, a)  # of two values: others have no shares
    return 1 - labels.shares[np.arange(len(usual)), usual]


def training_groups(labels: Labels, config: DebiasConfig) -> Ints | None:
    """The grouping that the sampler balances; None for natural sampling."""
    if config.use_pseudo:
        return labels.pseudo_groups()
    return labels.target_groups() if config.use_xrm else None


def selection_used(config: DebiasConfig) -> str:
    """What really picks the state that is kept, by name: an ablation without mined groups is not
    selected by them."""
    if config.selection != "val_pseudo_groups":
        return config.selection
    if config.use_pseudo:
        named = {"cbcm": "val_pseudo_groups", "random": "val_random_groups"}
        return named.get(config.pseudo_source, "val_true_groups")
    return "val_xrm_groups" if config.use_xrm else "val_worst_class"


def rule_name(config: DebiasConfig) -> str:
    """What a result says of its selection: on frozen features held-out training images join the
    validation images where few of these go against the finding."""
    used = selection_used(config)
    judged = config.tier == "features" and config.feature_folds > 0
    return "held_out_pseudo_groups" if judged and used == "val_pseudo_groups" else used


def selection_groups(labels: Labels, used: str) -> Ints:
    """The grouping whose worst accuracy on validation picks the state that is kept."""
    if used == "val_worst_class":
        return labels.y
    if used == "val_true_groups":
        true = _given(labels.true_a, "true attributes", "selection")
        return (int(true.max()) + 1) * labels.y + true
    return labels.target_groups() if used == "val_xrm_groups" else labels.pseudo_groups()


def evaluation_rows(labels: Labels, groups: Ints, per_group: int, *, seed: int) -> Ints:
    """Validation rows, at most `per_group` of a group (0: all), in table order."""
    if per_group == 0:
        return labels.val
    generator = numpy_generator(seed, "debias/validation")
    shuffled = generator.permutation(labels.val)
    kept = [shuffled[groups[shuffled] == g][:per_group] for g in np.unique(groups[labels.val])]
    return np.sort(np.concatenate(kept)) if kept else labels.val


def pseudo_labels(
    source: PseudoSource,
    *,
    mined: Ints | None = None,
    true: Ints | None = None,
    count: int = 0,
    values: int = 2,
    seed: int = 0,
) -> Ints:
    """The labels of the spurious branch: mined, the true attribute, or random (an ablation)."""
    if source == "random":
        generator = numpy_generator(seed, "debias/random-pseudo-labels")
        return generator.integers(values, size=count)
    if source == "true":
        return _given(true, "true attributes", "pseudo_source")
    return _given(mined, "mined pseudo labels", "pseudo_source")


def _given(column: Ints | None, what: str, field: str) -> Ints:
    if column is None:
        raise ConfigError(
            f"debias.{field} asks for {what}, and this run has none",
            remedy=f"change debias.{field}, or provide them",
        )
    return column
