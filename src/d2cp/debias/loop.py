"""The one training loop: D2CP, its controls and its rivals differ in the step they hand it.

Order, augmentation and dropout are functions of (seed, epoch, step), and the learning rate of the
epoch, so a checkpoint needs only the module, its average, the momentum, the scale of half precision
and the best state so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import Tensor, nn

from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Rows
from d2cp.core.averaging import Average
from d2cp.core.checkpoint import Checkpointer, load_optimizer_state, optimizer_state
from d2cp.core.device import make_accelerator
from d2cp.core.finite import require_finite, to_lower
from d2cp.core.interrupts import held_back
from d2cp.core.metrics_log import MetricsLog
from d2cp.core.optimisers import Moment, make_optimiser, scheduled
from d2cp.core.parts import working
from d2cp.core.processes import anyone, mean_gradients, share_of
from d2cp.core.progress import progress
from d2cp.data.loader import prefetch
from d2cp.errors import TrainingError

Score = tuple[float, ...]


@dataclass(frozen=True)
class Batch:
    """This process's share of a batch."""

    images: Tensor  # [b, 3, S, S] in [0, 1]
    rows: Tensor  # [b], rows of the table
    step: int
    epoch: int

    def to(self, device: torch.device) -> Batch:
        return replace(self, images=self.images.to(device), rows=self.rows.to(device))


Step = Callable[[Batch], tuple[Tensor, Mapping[str, float]]]  # loss of the global batch, figures
Order = Callable[[int], Rows]  # epoch -> rows of the table
Read = Callable[[Rows, Rows, int], Tensor]  # rows, their draws, epoch -> images [b, 3, S, S]
Evaluate = Callable[[], tuple[Score, Mapping[str, float]]]  # larger is better, figures


@dataclass
class Fitted:
    """What the loop did. The module holds the best state when there was an evaluation."""

    steps: int
    best_step: int
    best_score: Score | None
    history: list[dict[str, float]] = field(default_factory=list)  # one entry an evaluation


@dataclass(frozen=True)
class Plan:
    """Steps of a run: whole batches, and one short batch where an epoch has less than one."""

    per_epoch: int
    total: int
    evaluate_every: int

    @classmethod
    def of(cls, config: DebiasConfig, epoch_size: int) -> Plan:
        if epoch_size < 1:
            raise TrainingError("there is nothing to train on", expected="images in `train`")
        per_epoch = max(1, epoch_size // config.batch_size)
        total = config.epochs * per_epoch
        if config.max_steps:
            total = min(total, config.max_steps)
        return cls(per_epoch, total, config.evaluate_every or per_epoch)

    def evaluates(self, done: int) -> bool:
        return done % self.evaluate_every == 0 or done == self.total


def learning_rate(config: DebiasConfig, step: int, plan: Plan) -> float:
    at = Moment(
        step=step,
        steps=plan.total,
        epoch=step // plan.per_epoch,
        every=config.lr_every,
        gamma=config.lr_gamma,
    )
    return scheduled(config.lr_schedule, config.lr, at)


def fit(
    module: nn.Module,
    step: Step,
    order: Order,
    read: Read,
    config: DebiasConfig,
    *,
    epoch_size: int,
    evaluate: Evaluate | None = None,
    from_solution: bool = False,
    checkpointer: Checkpointer | None = None,
    log: MetricsLog | None = None,
    log_every: int = 10,
    stage: str = "debias",
    accelerator: Accelerator | None = None,
    quiet: bool = False,
) -> Fitted:
    """Train all parameters of `module`; on return it holds the best state by `evaluate`. Where it
    starts `from_solution`, what it is before the first step is one of them."""
    accelerator = accelerator or make_accelerator(config.precision)
    module.to(accelerator.device)
    parameters = [p for p in module.parameters() if p.requires_grad]
    remedy = remedy_of(config)
    optimizer = accelerator.prepare(
        make_optimiser(
            config.optimiser,
            decayed_parameters(module, parameters, config),
            lr=config.lr,
            weight_decay=config.weight_decay,
            momentum=config.momentum,
        )
    )
    plan = Plan.of(config, epoch_size)
    fitted, best = Fitted(0, 0, None), {}
    threads: int | None = None
    before: int | None = None  # threads that a resumed training had
    average = Average(module, config.ema)
    if checkpointer and (found := checkpointer.load()):
        best = _restore(module, optimizer, fitted, found.tensors, found.state)
        average.restore(found.tensors)
        fitted.steps = found.step
        before = found.state.get("threads")
        if accelerator.scaler and found.state["scaler"]:
            accelerator.scaler.load_state_dict(found.state["scaler"])
    main = accelerator.is_main_process
    if log and main:
        log.rewind(stage, fitted.steps)

    def judge(done: int) -> None:
        assert evaluate is not None
        score, figures = evaluate()
        if fitted.best_score is None or score >= fitted.best_score:
            fitted.best_step, fitted.best_score = done, score
            best.update({name: value.clone() for name, value in module.state_dict().items()})
        fitted.history.append({"step": done, **figures})
        if log and main:
            log(stage, done, **{f"val_{name}": v for name, v in figures.items()})

    if evaluate and from_solution and not fitted.steps:
        judge(0)
    batches = _batches(plan, order, read, fitted.steps, config.batch_size)
    ahead = 0 if accelerator.device.type == "cpu" else 1  # two pools of threads share a CPU badly
    display = progress(plan.total, stage, done=fitted.steps, quiet=quiet or not main)
    with display as bar, held_back() as stopped, ExitStack() as pool:
        for batch in prefetch(batches, ahead=ahead):
            if threads is None:
                threads = pool.enter_context(working(batch.images.numel(), before))
            batch = batch.to(accelerator.device)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config, batch.step, plan)
            loss, figures = _loss(step, batch, optimizer, accelerator)
            value = loss.item()
            rows = batch.rows.tolist()
            require_finite(value, stage, batch.step, rows, checkpointer, remedy)
            _descend(loss, parameters, optimizer, accelerator, config.clip)
            average.update(batch.step)
            done = fitted.steps = batch.step + 1
            bar.step(len(batch.rows) * accelerator.num_processes, loss=value)
            if log and main and (done % log_every == 0 or done == 1):
                log(stage, done, loss=value, lr=optimizer.param_groups[0]["lr"], **figures)
            if evaluate and plan.evaluates(done):
                with average.installed():
                    judge(done)
            stop = anyone(stopped())
            due = checkpointer and (checkpointer.due(done) or done == plan.total or stop)
            if checkpointer and main and due:
                tensors, state = _snapshot(module, optimizer, fitted, best, average)
                state["threads"] = threads
                state["scaler"] = accelerator.scaler.state_dict() if accelerator.scaler else None
                checkpointer.save(done, tensors, state, remedy)
            if stop:
                raise KeyboardInterrupt
    average.install()
    if best:
        module.load_state_dict(best)
    return fitted


def decayed_parameters(
    module: nn.Module, parameters: list[nn.Parameter], config: DebiasConfig
) -> list[dict[str, Any]]:
    """Parameters for the optimizer; W^a apart where it has a weight decay of its own."""
    if config.spurious_decay is None:
        return [{"params": parameters}]
    named = [p for name, p in module.named_parameters() if name.endswith("head_a.weight")]
    own = [p for p in named if p.requires_grad]  # a solved one is not trained
    rest = [p for p in parameters if all(p is not q for q in own)]
    apart = [{"params": [p], "weight_decay": config.spurious_decay} for p in own]
    return [{"params": rest}, *apart]


def _loss(
    step: Step, batch: Batch, optimizer: torch.optim.Optimizer, accelerator: Accelerator
) -> tuple[Tensor, Mapping[str, float]]:
    optimizer.zero_grad()
    with accelerator.autocast():
        return step(batch)


def _descend(
    loss: Tensor,
    parameters: list[nn.Parameter],
    optimizer: torch.optim.Optimizer,
    accelerator: Accelerator,
    clip: float,
) -> None:
    accelerator.backward(loss)
    mean_gradients(parameters)
    if clip:
        accelerator.clip_grad_norm_(parameters, clip)
    optimizer.step()


def _batches(plan: Plan, order: Order, read: Read, first: int, size: int) -> Iterator[Batch]:
    """This process's batches from step `first` on."""
    rows, current = np.empty(0, np.int64), -1
    for step in range(first, plan.total):
        epoch, position = divmod(step, plan.per_epoch)
        if epoch != current:
            rows, current = order(epoch), epoch
        draws = np.arange(position * size, min((position + 1) * size, len(rows)))
        draws = draws[share_of(len(draws))]
        images = read(rows[draws], draws, epoch)
        yield Batch(images, torch.from_numpy(rows[draws]), step, epoch)


def _snapshot(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    fitted: Fitted,
    best: dict[str, Tensor],
    average: Average,
) -> tuple[dict[str, Tensor], dict[str, object]]:
    momentum, settings = optimizer_state(optimizer)
    tensors = {f"module.{name}": value for name, value in module.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in best.items()} | momentum
    tensors |= average.tensors()
    state = {
        "optimizer": settings,
        "best_step": fitted.best_step,
        "best_score": fitted.best_score,
        "history": fitted.history,
    }
    return tensors, state


def _restore(
    module: nn.Module,
    optimizer: torch.optim.Optimizer,
    fitted: Fitted,
    tensors: dict[str, Tensor],
    state: dict[str, object],
) -> dict[str, Tensor]:
    """Take up a checkpoint; returns the best state so far."""

    def part(prefix: str) -> dict[str, Tensor]:
        return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}

    module.load_state_dict(part("module."))
    load_optimizer_state(optimizer, tensors, state["optimizer"])  # type: ignore[arg-type]
    score = state["best_score"]
    fitted.best_step = state["best_step"]  # type: ignore[assignment]
    fitted.best_score = None if score is None else tuple(score)  # type: ignore[arg-type]
    fitted.history = state["history"]  # type: ignore[assignment]
    return part("best.")


def require_finite_answers(logits: NDArray[np.floating[Any]], config: DebiasConfig) -> None:
    """Raise where a trained model has no answer: its last step can have thrown it off."""
    bad = int((~np.isfinite(logits)).any(axis=1).sum())
    if bad:
        raise TrainingError(
            f"the trained model answers {bad} of {len(logits)} images with no number",
            expected="finite answers",
            remedy=remedy_of(config),
        )


def remedy_of(config: DebiasConfig) -> str:
    """Of a loss or an answer that is not finite."""
    decay = 1 / min(1, config.lr)  # a step shrinks weights by lr · decay: beyond 1 they overshoot
    weights = ("weight_y", "weight_a", "weight_xrm_y", "weight_xrm_a")
    most = {"lr": 1, "weight_decay": decay, "spurious_decay": decay, "momentum": 0.999}
    most |= {"lr_gamma": 1, "head_init": 10, "eta": 10, **dict.fromkeys(weights, 1e4)}
    settings = {f"debias.{name}": getattr(config, name) for name in most}
    advice = to_lower(settings, {f"debias.{name}": limit for name, limit in most.items()})
    return f"{advice}, or check the images"
