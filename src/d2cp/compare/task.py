"""What a method is handed, and the one way it trains: the shared loop, a budget, a selection rule.

A task holds no true attribute unless the method declared that it sees train groups; the selection
rule is a closure that returns a score and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from d2cp.backbone.text_tower import ClassText
from d2cp.compare.tiers import Classifier, Space
from d2cp.config.debias import DebiasConfig
from d2cp.config.environments import EnvironmentsConfig
from d2cp.core.arrays import Rows
from d2cp.core.checkpoint import Checkpointer
from d2cp.debias.loop import Batch, Fitted, Plan, Read, Score, Step, fit, learning_rate
from d2cp.debias.sampler import natural_order, weighted_order
from d2cp.errors import DataError

Logits = Callable[[Rows], Tensor]
Order = Callable[[int], Rows]  # epoch -> positions among the training rows
Equal = Literal["passes", "epochs"]
EVALUATIONS = 5  # of the selection rule in a training


@dataclass(frozen=True)
class Pseudo:
    """Mined pseudo attributes of every row, how extreme each is, and XRM's bits."""

    attribute: Rows
    values: int
    score: np.ndarray[tuple[int], np.dtype[np.float64]]
    y_xrm: Rows
    a_xrm: Rows

    def groups(self, task: Task) -> Rows:
        """g = A*y + a~ of the training rows."""
        return self.values * task.y_train + self.attribute[task.train]


@dataclass
class Task:
    """Rows are table rows throughout. `y` is -1 outside train and val: test labels are not here."""

    y: Rows
    train: Rows
    val: Rows
    classes: int
    seed: int
    # equal passes: how often an image may go through the trained network in all trainings together;
    # equal epochs: how many images each training shows, whatever a step costs
    budget: int
    config: DebiasConfig
    space: Space
    select: Callable[[Logits], Score] | None = None  # scores logits on validation, larger is better
    attribute: Rows | None = None  # of the training rows, in their order; group-supervised only
    val_attribute: Rows | None = None  # of the validation rows; only for those that fit on them
    values: int = 0
    equal: Equal = "passes"
    text: ClassText | None = None
    environments: EnvironmentsConfig = field(default_factory=EnvironmentsConfig)
    mined: Pseudo | None = None
    checkpoints: Callable[[str], Checkpointer] | None = None  # stage -> where it saves
    quiet: bool = True
    passes: int = 0  # used so far
    notes: list[str] = field(default_factory=list)  # what the reader of the result should know

    @property
    def y_train(self) -> Rows:
        return self.y[self.train]

    @property
    def groups(self) -> Rows:
        """g = A*y + a of the training rows, for methods that declared they see it."""
        if self.attribute is None:
            raise _no_groups("sees_train_groups")
        return self.values * self.y_train + self.attribute

    @property
    def val_groups(self) -> Rows:
        """g = A*y + a of the validation rows, for methods that declared they fit on them."""
        if self.val_attribute is None:
            raise _no_groups("fits_on_val_groups")
        return self.values * self.y[self.val] + self.val_attribute

    @property
    def group_count(self) -> int:
        return self.classes * self.values

    @property
    def pseudo(self) -> Pseudo:
        if self.mined is None:
            raise DataError(
                "this task has no mined pseudo attributes",
                expected="the discover stage of the data set",
                remedy="use d2cp compare, which runs it, or hand Task(mined=...)",
            )
        return self.mined

    @property
    def class_text(self) -> ClassText:
        if self.text is None:
            raise DataError(
                "this task has no text encoder",
                expected="a backbone that is a whole CLIP, text tower included",
                remedy="pass the folder of such a model as --backbone, or leave the method out",
            )
        return self.text

    def left(self, used: int) -> int:
        """The budget of a training after one of `used`: with equal epochs each has it whole."""
        return max(1, self.budget - used) if self.equal == "passes" else self.budget

    def classifier(self, outputs: int = 0) -> Classifier:
        return self.space.classifier(outputs or self.classes, seed=self.seed)

    def natural(self, draws: int) -> Order:
        """ERM's order, the same for every method and seed."""
        n = len(self.train)
        return lambda epoch: natural_order(n, draws, seed=self.seed, epoch=epoch)

    def weighted(self, groups: Rows, alpha: float, draws: int) -> Order:
        """Sampling with weights (N / N_g)^alpha; `groups` of the training rows."""
        return lambda epoch: weighted_order(groups, alpha, draws, seed=self.seed, epoch=epoch)

    def fit(
        self,
        module: nn.Module,
        step: Step,
        *,
        stage: str,
        passes: int,
        order: Callable[[int], Order] | None = None,
        logits: Logits | None = None,
        changes: Mapping[str, object] | None = None,
        read: Read | None = None,
        cost: float = 1,
        from_solution: bool = False,
    ) -> Fitted:
        """Train `module` for `passes`; with `logits`, keep the state that the rule likes best.

        The passes are cut into as many epochs as the configuration has, so that its learning-rate
        schedule covers a budget of any size.
        `order` makes an epoch's order from its number of draws; `changes` are fields of the
        configuration; `cost` is how often an image goes through the network in a step;
        `from_solution`: the state before the first step is one to choose from.
        """
        config, draws = self.plan(passes, changes, cost)
        positions = (order or self.natural)(draws)
        rule = self.select if logits is not None else None

        def evaluate() -> tuple[Score, Mapping[str, float]]:
            assert rule is not None and logits is not None
            score = rule(logits)
            return score, {"selection": score[0]}

        fitted = fit(
            module,
            step,
            lambda epoch: self.train[positions(epoch)],
            read or self.space.read,
            config,
            epoch_size=draws,
            evaluate=evaluate if rule is not None else None,
            from_solution=from_solution,
            checkpointer=self.checkpoints(stage) if self.checkpoints else None,
            stage=stage,
            quiet=self.quiet,
        )
        self.passes += round(config.max_steps * config.batch_size * cost)
        return fitted

    def plan(
        self, passes: int, changes: Mapping[str, object] | None = None, cost: float = 1
    ) -> tuple[DebiasConfig, int]:
        """The configuration of a training of `passes`, its steps in `max_steps`, and the draws of
        one of its epochs."""
        config = replace(self.config, **(changes or {}))  # type: ignore[arg-type]
        size = max(1, min(config.batch_size, len(self.train)))
        steps = max(1, int(passes / (size * (cost if self.equal == "passes" else 1))))
        draws = config.epoch_size or size * max(1, round(steps / config.epochs))
        config = replace(
            config,
            batch_size=size,
            max_steps=steps,
            epochs=steps,  # the number of steps ends the training, not the number of epochs
            evaluate_every=max(1, steps // EVALUATIONS),
        )
        return config, draws

    def final_rate(self, passes: int) -> float:
        """The learning rate at the last step of a training of `passes`."""
        config, draws = self.plan(passes)
        return learning_rate(config, config.max_steps - 1, Plan.of(config, draws))

    def lookup(self, values: Rows) -> Callable[[Tensor], Tensor]:
        """Values in the order of the training rows -> a function of table rows."""
        table = torch.zeros(len(self.y), dtype=torch.int64)
        table[torch.from_numpy(self.train)] = torch.from_numpy(values.astype(np.int64))
        return lambda rows: table[rows.cpu()].to(rows.device)

    @cached_property
    def labels(self) -> Callable[[Tensor], Tensor]:
        return self.lookup(self.y_train)


def _no_groups(declaration: str) -> DataError:
    return DataError(
        "this task has no group labels: the method may not see them, or there are none",
        expected=f"a method declared with {declaration}, and a table with attributes",
        remedy=f"declare {declaration}=True in the method's Spec",
    )


@dataclass(frozen=True)
class ModelPredictor:
    """A classifier over a space; `trainable` counts what was trained to get it."""

    model: nn.Module
    space: Space
    trainable: int

    def logits(self, rows: Rows) -> Tensor:
        return self.space.over(self.model, rows)


def trainable(*modules: nn.Module) -> int:
    return sum(p.numel() for m in modules for p in m.parameters() if p.requires_grad)


__all__ = ["Batch", "Fitted", "ModelPredictor", "Pseudo", "Score", "Task", "trainable"]
