"""The loop: resumes bit for bit, keeps the best state, refuses what is not finite."""

import contextlib
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Rows
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.metrics_log import MetricsLog
from d2cp.core.processes import global_mean
from d2cp.core.rng import numpy_generator, permutation
from d2cp.core.threads import using
from d2cp.debias import loop
from d2cp.debias.loop import Batch, Fitted, Plan, fit, learning_rate
from d2cp.errors import TrainingError

N, CONFIG = 50, DebiasConfig(epochs=3, batch_size=8, lr=0.5, image_size=4, resize=4)
AVERAGED = replace(CONFIG, ema=0.6)
Y = torch.arange(N) % 2


class KilledError(Exception):
    pass


def read(rows: Rows, draws: Rows, epoch: int) -> Tensor:
    noise = numpy_generator(0, "noise", epoch).normal(size=(N, 3, 4, 4))[draws]
    return torch.from_numpy(noise).float() + Y[rows].view(-1, 1, 1, 1)


def order(epoch: int) -> Rows:
    return permutation(7, "test", epoch, N)


def new_module() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 2))


def run(
    module: nn.Module,
    directory: Path | None = None,
    *,
    kill_at: int = -1,
    config: DebiasConfig = CONFIG,
    log: MetricsLog | None = None,
    scores: list[float] | None = None,
) -> Fitted:
    def step(batch: Batch) -> tuple[Tensor, dict[str, float]]:
        if batch.step == kill_at:
            raise KilledError
        losses = cross_entropy(module(batch.images), Y[batch.rows], reduction="none")
        return global_mean(losses.mean(), len(losses)), {"size": float(len(batch.rows))}

    def evaluate() -> tuple[tuple[float, ...], dict[str, float]]:
        score = scores.pop(0) if scores else module(read(order(0), order(0), 0))[0, 0].item()
        return (score,), {"score": score}

    checkpointer = Checkpointer(directory, "test", every_steps=2) if directory else None
    return fit(
        module, step, order, read, config, epoch_size=N, evaluate=evaluate,
        checkpointer=checkpointer, log=log, log_every=1, quiet=True,
    )  # fmt: skip


def weights(module: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@pytest.mark.parametrize("config", [CONFIG, AVERAGED], ids=["plain", "averaged"])
@pytest.mark.parametrize("kill_at", [0, 1, 5, 6, 11, 17])
def test_killed_and_resumed_equals_uninterrupted(
    tmp_path: Path, kill_at: int, config: DebiasConfig
) -> None:
    whole = new_module()
    (tmp_path / "whole").mkdir()
    expected = run(whole, config=config, log=MetricsLog(tmp_path / "whole"))
    broken, log = new_module(), MetricsLog(tmp_path)
    with pytest.raises(KilledError):
        run(broken, tmp_path / "checkpoints", kill_at=kill_at, config=config, log=log)
    resumed = new_module()
    with torch.no_grad():
        for p in resumed.parameters():
            p.fill_(9.0)  # what it starts from must not matter once there is a checkpoint
    if kill_at < 2:
        resumed = new_module()  # nothing was saved yet
    fitted = run(resumed, tmp_path / "checkpoints", config=config, log=log)
    assert torch.equal(weights(resumed), weights(whole))
    assert fitted == expected
    assert log.path.read_text() == (tmp_path / "whole" / "metrics.jsonl").read_text()


def test_ctrl_c_saves_the_step_it_came_in_and_the_same_call_goes_on(tmp_path: Path) -> None:
    whole = new_module()
    expected = run(whole)
    stopped = new_module()
    pressed: list[int] = []

    def press(*_: object) -> None:
        if not pressed:
            pressed.append(1)
            signal.raise_signal(signal.SIGINT)

    stopped.register_forward_hook(press)
    with pytest.raises(KeyboardInterrupt):
        run(stopped, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000001.safetensors"]
    resumed = new_module()
    assert run(resumed, tmp_path) == expected
    assert torch.equal(weights(resumed), weights(whole))


def test_a_resumed_loop_computes_with_as_many_threads(tmp_path: Path, monkeypatch) -> None:
    asked: list[tuple[int, int | None]] = []

    @contextlib.contextmanager
    def choose(values: int, before: int | None = None) -> Iterator[int]:
        asked.append((values, before))
        with using(before or 3):
            yield before or 3

    monkeypatch.setattr(loop, "working", choose)
    with pytest.raises(KilledError):
        run(new_module(), tmp_path, kill_at=5)
    used: set[int] = set()
    module = new_module()
    module.register_forward_hook(lambda *_: used.add(torch.get_num_threads()))
    run(module, tmp_path)
    assert asked == [(8 * 3 * 4 * 4, None), (8 * 3 * 4 * 4, 3)] and used == {3}


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first, second = new_module(), new_module()
    fitted = run(first, tmp_path)
    assert run(second, tmp_path, kill_at=0) == fitted
    assert torch.equal(weights(first), weights(second))


def test_best_state_is_kept_and_ties_go_to_the_later() -> None:
    states = []
    module = new_module()
    module.register_forward_hook(lambda *_: states.append(weights(module)))
    fitted = run(module, scores=[0.2, 0.9, 0.9])
    assert fitted.best_step == 18 and fitted.best_score == (0.9,)
    module = new_module()
    fitted = run(module, scores=[0.2, 0.9, 0.5])
    assert fitted.best_step == 12
    assert torch.equal(weights(module), states[12])  # the state that step 12 started from
    assert [entry["step"] for entry in fitted.history] == [6, 12, 18]


def test_the_average_is_scored_and_kept_and_training_goes_on_from_the_weights() -> None:
    plain, averaged = new_module(), new_module()
    live: list[Tensor] = []
    plain.register_forward_hook(lambda *_: live.append(weights(plain)))
    run(plain, scores=[0.0, 0.1, 0.2])
    trained = [*live[1:], weights(plain)]  # after each step
    expected = live[0]
    for n, state in enumerate(trained):
        decay = min(0.6, (1 + n) / (10 + n))
        expected = decay * expected + (1 - decay) * state
    seen: list[Tensor] = []
    averaged.register_forward_hook(lambda *_: seen.append(weights(averaged)))
    run(averaged, config=AVERAGED, scores=[0.0, 0.1, 0.2])
    assert all(torch.equal(a, b) for a, b in zip(seen, live, strict=True))
    torch.testing.assert_close(weights(averaged), expected)
    assert not torch.allclose(weights(averaged), weights(plain))


def test_an_evaluation_sees_the_average() -> None:
    averaged, kept = new_module(), new_module()
    seen: list[float] = []

    class Scores(list[float]):
        def pop(self, _: int = 0) -> float:
            seen.append(float(weights(averaged).sum()))
            return float(len(seen))

    run(averaged, config=AVERAGED, scores=Scores([0.0]))
    run(kept, config=AVERAGED, scores=[0.0, 1.0, 2.0])
    assert len(seen) == 3 and seen[-1] == float(weights(kept).sum())


@pytest.mark.parametrize(
    ("setting", "value"), [("weight_decay", 1e30), ("lr", 1e30), ("momentum", 1e30)]
)
def test_the_advice_names_what_is_to_blame(setting: str, value: float, tmp_path: Path) -> None:
    wrong = replace(CONFIG, **{setting: value})
    with pytest.raises(TrainingError, match=rf"lower debias\.{setting} \(now 1e\+30\), or"):
        run(new_module(), tmp_path, config=wrong)


def test_not_finite_loss_is_an_error() -> None:
    module = new_module()
    with torch.no_grad():
        next(iter(module.parameters())).fill_(float("nan"))
    with pytest.raises(TrainingError, match="loss is nan at step 0"):
        run(module)


def test_answers_that_are_no_numbers_are_an_error_that_names_what_is_to_blame() -> None:
    answers = np.array([[1.0, 2.0], [np.nan, 0.0], [np.inf, 0.0]])
    loop.require_finite_answers(answers[:1], CONFIG)
    with pytest.raises(TrainingError, match=r"2 of 3 images") as refused:
        loop.require_finite_answers(answers, replace(CONFIG, weight_decay=1e30))
    assert "lower debias.weight_decay" in str(refused.value)


def test_plan_and_learning_rate() -> None:
    assert Plan.of(CONFIG, 50) == Plan(per_epoch=6, total=18, evaluate_every=6)
    assert Plan.of(CONFIG, 5).total == 3  # an epoch smaller than a batch is one step
    limited = DebiasConfig(batch_size=8, max_steps=7, evaluate_every=3)
    plan = Plan.of(limited, 50)
    assert [s for s in range(1, 8) if plan.evaluates(s)] == [3, 6, 7]
    with pytest.raises(TrainingError):
        Plan.of(CONFIG, 0)
    stepped = DebiasConfig(lr_schedule="step", lr=1.0)
    plan = Plan(per_epoch=2, total=60, evaluate_every=60)
    rates = [learning_rate(stepped, 2 * epoch + 1, plan) for epoch in (0, 9, 10, 25)]
    assert rates == pytest.approx([1, 1, 0.1, 0.01])
    assert learning_rate(DebiasConfig(lr=1.0), 50, plan) == 1.0


def test_is_sgd_with_momentum_decay_and_clip() -> None:
    """Against a hand-written update."""
    config = DebiasConfig(
        epochs=1, batch_size=8, lr=0.5, weight_decay=0.1, clip=0.05, image_size=4, resize=4
    )
    module, reference = new_module(), new_module()
    run(module, config=config, scores=[0.0])
    velocity: list[Tensor] = [torch.zeros_like(p) for p in reference.parameters()]
    for step in range(6):
        draws = np.arange(step * 8, (step + 1) * 8)
        rows = order(0)[draws]
        loss = cross_entropy(reference(read(rows, draws, 0)), Y[rows])
        gradients = torch.autograd.grad(loss, list(reference.parameters()))
        norm = torch.sqrt(sum((g.square().sum() for g in gradients), torch.tensor(0.0)))
        with torch.no_grad():
            for i, p in enumerate(reference.parameters()):
                gradient = gradients[i] * min(1.0, 0.05 / float(norm + 1e-6)) + 0.1 * p
                velocity[i] = 0.9 * velocity[i] + gradient
                p -= 0.5 * velocity[i]
    assert torch.allclose(weights(module), weights(reference), atol=1e-6)
    assert np.isfinite(weights(module).numpy()).all()
