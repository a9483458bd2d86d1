"""One plain training loop for the parts of stage 1: resumable, averaged, clipped, watched."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn

from d2cp.core.averaging import Average
from d2cp.core.checkpoint import Checkpointer, load_optimizer_state, optimizer_state
from d2cp.core.finite import require_finite, to_lower
from d2cp.core.interrupts import held_back
from d2cp.core.optimisers import Moment, make_optimiser, scheduled
from d2cp.core.parts import working
from d2cp.core.processes import anyone
from d2cp.core.progress import Bar, progress

LOG_EVERY = 20


class MetricsSink(Protocol):
    def __call__(self, stage: str, step: int, **values: float) -> None: ...

    def rewind(self, stage: str, step: int) -> None: ...


ProgressFactory = Callable[..., contextlib.AbstractContextManager[Bar]]


@dataclass(frozen=True)
class Watch:
    """Who looks on: where checkpoints go, what is shown, what is logged."""

    checkpointer: Checkpointer | None = None
    progress: ProgressFactory = progress
    log: MetricsSink | None = None

    def part(self, name: str) -> Watch:
        """The same for a part of the stage, with checkpoints in a folder of its own."""
        if self.checkpointer is None:
            return self
        folder = self.checkpointer.directory / name
        return replace(self, checkpointer=replace(self.checkpointer, directory=folder))


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a part trains. `ema` 0 keeps the last weights; `ema_prefix` names what is averaged."""

    steps: int
    batch: int
    settings: str = "disentangle"  # where lr and weight_decay are, for a message
    penalties: Mapping[str, float] = field(default_factory=dict)  # settings that weigh a loss
    side: int = 0  # pixels of an image's side: with the batch it decides the number of threads
    lr: float
    optimiser: str = "adamw"
    lr_schedule: str = "cosine"
    warmup: int = 0
    weight_decay: float = 0.0
    clip: float = 1.0
    ema: float = 0.0
    ema_warmup: bool = True
    ema_prefix: str = ""


def learning_rate(recipe: Recipe, step: int) -> float:
    at = Moment(step=step, steps=recipe.steps, warmup=recipe.warmup)
    return scheduled(recipe.lr_schedule, recipe.lr, at)


def fit(
    module: nn.Module,
    loss_at: Callable[[nn.Module, int], Tensor],
    recipe: Recipe,
    accelerator: Accelerator,
    watch: Watch,
    stage: str,
    rows_at: Callable[[int], NDArray[np.int64]],
) -> None:
    """Train `module` in place; it ends with its averaged weights, in evaluation mode.

    `loss_at(module, step)` is the loss of the whole batch, from this process's share of its images
    (see core/processes.py), `rows_at(step)` all of these images. Everything drawn must be a
    function of the step: then a killed run, resumed, ends with the same bits.
    """
    weights = [p for p in module.parameters() if p.requires_grad]
    optimizer = make_optimiser(
        recipe.optimiser, weights, lr=recipe.lr, weight_decay=recipe.weight_decay
    )
    module.train()
    wrapped, optimizer = accelerator.prepare(module, optimizer)
    average = Average(module, recipe.ema, warmup=recipe.ema_warmup, prefix=recipe.ema_prefix)
    start, before = _resume(module, optimizer, average, accelerator, watch, stage)
    display = watch.progress(recipe.steps, stage, done=start)
    crew = working(recipe.batch * 3 * recipe.side**2, before)
    with display as bar, held_back() as stopped, crew as threads:
        for step in range(start, recipe.steps):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(recipe, step)
            loss = loss_at(wrapped, step)
            accelerator.backward(loss)
            if recipe.clip:
                accelerator.clip_grad_norm_(weights, recipe.clip)
            optimizer.step()
            optimizer.zero_grad()
            average.update(step)
            value = float(loss.detach())
            if not math.isfinite(value):
                rows = rows_at(step).tolist()
                require_finite(value, stage, step, rows, watch.checkpointer, _remedy(recipe))
            bar.step(images=recipe.batch, loss=value)
            if watch.log and accelerator.is_main_process and step % LOG_EVERY == 0:
                watch.log(stage, step, loss=value, lr=learning_rate(recipe, step))
            last = step + 1 == recipe.steps
            saver = watch.checkpointer
            stop = anyone(stopped())
            due = saver and (last or saver.due(step + 1) or stop)
            if saver and accelerator.is_main_process and due:
                tensors, state = _state(module, optimizer, average, accelerator, threads)
                saver.save(step + 1, tensors, state, _remedy(recipe))
            if stop:
                raise KeyboardInterrupt
    average.install()
    accelerator.unwrap_model(wrapped, keep_fp32_wrapper=False)  # undo the wrapping of `forward`
    module.eval()


def _remedy(recipe: Recipe) -> str:
    """Of a loss that is not finite."""
    decay = 1 / min(1, recipe.lr)  # a step shrinks weights by lr · decay: beyond 1 they overshoot
    own = {"lr": (recipe.lr, 0.1), "weight_decay": (recipe.weight_decay, decay)}
    known = {f"{recipe.settings}.{name}": pair for name, pair in own.items()}
    known |= {name: (value, 1e4) for name, value in recipe.penalties.items()}
    settings = {name: value for name, (value, _) in known.items()}
    most = {name: limit for name, (_, limit) in known.items()}
    return f"{to_lower(settings, most)}, or set disentangle.precision = no"


def _state(
    module: nn.Module,
    optimizer: Any,
    average: Average,
    accelerator: Accelerator,
    threads: int,
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, state = optimizer_state(optimizer)
    tensors |= {f"model.{name}": value for name, value in module.state_dict().items()}
    tensors |= average.tensors()
    state["scaler"] = accelerator.scaler.state_dict() if accelerator.scaler else None
    state["threads"] = threads
    return tensors, state


def _resume(
    module: nn.Module,
    optimizer: Any,
    average: Average,
    accelerator: Accelerator,
    watch: Watch,
    stage: str,
) -> tuple[int, int | None]:
    """The step to go on with, and the number of threads that came so far."""
    found = watch.checkpointer.load() if watch.checkpointer else None
    step = found.step if found else 0
    if watch.log and accelerator.is_main_process:
        watch.log.rewind(stage, step - 1)
    if found is None:
        return 0, None
    names = module.state_dict()
    module.load_state_dict({name: found.tensors[f"model.{name}"] for name in names})
    average.restore(found.tensors)
    load_optimizer_state(optimizer, found.tensors, found.state)
    if found.state["scaler"] and accelerator.scaler:
        accelerator.scaler.load_state_dict(found.state["scaler"])
    return step, found.state.get("threads")
