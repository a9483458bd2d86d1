"""Equal footing: what all methods share for one seed, and the task each of them is handed.

Here, and only here, true attributes are taken away: a method that declared no train groups gets
none, and the selection rule keeps those of validation rows inside a closure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from d2cp.backbone.text_tower import ClassText
from d2cp.compare.contract import Params, Spec
from d2cp.compare.task import Equal, Logits, Pseudo, Task
from d2cp.compare.tiers import Space
from d2cp.config.debias import DebiasConfig, SelectionRule
from d2cp.config.environments import EnvironmentsConfig
from d2cp.core.arrays import UNKNOWN, Rows
from d2cp.core.checkpoint import Checkpointer
from d2cp.data.table import Table
from d2cp.debias.labels import Labels, evaluation_rows, selection_groups
from d2cp.debias.loop import Score
from d2cp.errors import DataError


@dataclass(frozen=True, kw_only=True)
class Footing:
    """One data set, seed, budget, rule and space for all methods."""

    table: Table
    space: Space
    config: DebiasConfig
    seed: int
    budget: int
    environments: EnvironmentsConfig = field(default_factory=EnvironmentsConfig)
    equal: Equal = "passes"
    mined: Pseudo | None = None
    text: ClassText | None = None
    quiet: bool = True

    @property
    def rule(self) -> SelectionRule:
        return self.config.selection

    def task(
        self,
        spec: Spec,
        checkpoints: Callable[[str], Checkpointer] | None = None,
        params: Params | None = None,
    ) -> Task:
        """The task of a method: no attribute in it unless the method declared that it sees them.
        Its learning rate and weight decay are those of `params`, where they or the Spec say so."""
        spec.require_tier(self.space.tier)
        spec = spec.on(self.space.tier)
        table = self.table
        train, val = table.rows("train"), table.rows("val")
        attribute = val_attribute = None
        if spec.needs_groups:
            if table.a is None:
                raise DataError(
                    f"{spec.title} needs group labels, and {table.name!r} has no attribute column",
                    remedy=f"leave {spec.name!r} out of --methods, or add an attribute column",
                )
            attribute = table.a[train] if spec.sees_train_groups else None
            val_attribute = table.a[val] if spec.fits_on_val_groups else None
        settings = replace(self.config, epoch_size=0, max_steps=0, evaluate_every=0)
        return Task(
            y=blanked(table.y, train, val),
            train=train,
            val=val,
            classes=table.n_classes,
            seed=self.seed,
            budget=self.budget,
            config=replace(settings, **spec.shared(spec.values(params))),  # type: ignore[arg-type]
            space=self.space,
            select=self.selection(),
            attribute=attribute,
            val_attribute=val_attribute,
            values=table.n_values if spec.needs_groups else 0,
            equal=self.equal,
            text=self.text if "text" in spec.needs else None,
            environments=self.environments,
            mined=self.mined if "pseudo" in spec.needs else None,
            checkpoints=checkpoints,
            quiet=self.quiet,
        )

    def selection(self) -> Callable[[Logits], Score] | None:
        """(worst, mean) accuracy over the rule's groups of validation; None without validation."""
        table = self.table
        train, val = table.rows("train"), table.rows("val")
        if not len(val):
            return None
        mined = self.mined if self.rule == "val_pseudo_groups" else None
        truth = None
        if self.rule == "val_true_groups" and table.a is not None:
            truth = np.where(np.isin(np.arange(len(table)), val), table.a, 0)
        labels = Labels(
            y=np.maximum(blanked(table.y, train, val), 0),
            classes=table.n_classes,
            train=train,
            val=val,
            a=None if mined is None else mined.attribute,
            values=2 if mined is None else mined.values,
            y_xrm=None if mined is None else mined.y_xrm,
            true_a=truth,
        )
        groups = selection_groups(labels, self.rule)
        rows = evaluation_rows(labels, groups, self.config.evaluate_per_group, seed=self.seed)
        y, of_row = labels.y[rows], groups[rows]
        present = np.unique(of_row)

        def score(logits: Logits) -> Score:
            right = logits(rows).argmax(1).numpy() == y
            accuracies = [float(right[of_row == g].mean()) for g in present]
            return min(accuracies), float(np.mean(accuracies))

        return score


def blanked(y: Rows, train: Rows, val: Rows) -> Rows:
    """Labels with -1 wherever a row is neither train nor val."""
    kept = np.full_like(y, UNKNOWN)
    kept[train], kept[val] = y[train], y[val]
    return kept
