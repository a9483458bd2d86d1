"""Training: resume to the same bits, a loss that is not finite, both spaces, saving."""

import contextlib
import dataclasses
import functools
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from d2cp.config.strict import changed
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.progress import Bar, progress
from d2cp.data.pixels import signed_view
from d2cp.disentangle import concept_loop as loop
from d2cp.disentangle.batches import batch_positions
from d2cp.disentangle.concept_files import load_concepts, load_model, save_concepts, save_model
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.concept_training import train_concepts
from d2cp.disentangle.correlation import squared_correlation_within
from d2cp.disentangle.extract import extract
from d2cp.disentangle.latent_space import PixelSpace
from d2cp.errors import RunError, TrainingError

quiet = functools.partial(progress, quiet=True)


class KilledError(Exception):
    pass


def killer(at: int, stage: str):
    """A progress display that dies at a step of a stage, as a kill would, between any two steps."""

    class Dying(Bar):
        def step(self, images=0, **values):
            super().step(images, **values)
            if self.title == stage and self.done == at:
                raise KilledError

    @contextlib.contextmanager
    def show(total, title, *, done=0):
        yield Dying(total, title, done)

    return show


@pytest.mark.parametrize("stage, at", [("disentangle", 7), ("disentangle/guide-1", 4)])
@pytest.mark.parametrize("encoder", ["paper", "code"])
def test_killed_and_resumed_equals_uninterrupted(tiny, toy, tmp_path, stage, at, encoder):
    config = changed(tiny, {"encoder.kind": encoder})
    whole = train_concepts(toy.images, toy.rows, toy.y, config, 5, progress=quiet)

    def again(show):
        saver = Checkpointer(tmp_path, "x", every_steps=3)
        return train_concepts(
            toy.images, toy.rows, toy.y, config, 5, checkpointer=saver, progress=show
        )

    with pytest.raises(KilledError):
        again(killer(at, stage))
    resumed = again(quiet)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_a_resumed_part_computes_with_as_many_threads(tiny, toy, tmp_path, monkeypatch):
    asked = []

    @contextlib.contextmanager
    def choose(values, before=None):
        asked.append((values, before))
        yield before or 2

    monkeypatch.setattr(loop, "working", choose)
    config = changed(tiny, {"guide.concepts": 0})
    for show in (killer(7, "disentangle"), quiet):
        saver = Checkpointer(tmp_path, "x", every_steps=3)
        with contextlib.suppress(KilledError):
            train_concepts(
                toy.images, toy.rows, toy.y, config, 5, checkpointer=saver, progress=show
            )
    assert asked == [(8 * 3 * 16**2, None), (8 * 3 * 16**2, 2)]


def test_sigkill_at_any_moment_then_resume(tiny, toy, tmp_path):
    config = dataclasses.replace(tiny, steps=40)
    np.savez(tmp_path / "toy.npz", images=toy.images, y=toy.y)
    script = textwrap.dedent(f"""
        import contextlib, time
        from pathlib import Path
        import numpy as np, torch
        from d2cp.core.checkpoint import Checkpointer
        from d2cp.config.disentangle import DisentangleConfig
        from d2cp.config.strict import build
        from d2cp.disentangle.concept_training import train_concepts
        from d2cp.core.progress import Bar
        torch.set_num_threads(1)

        class Waiting(Bar):
            def step(self, images=0, **values):
                super().step(images, **values)
                if self.title == "disentangle" and self.done == 39:
                    time.sleep(600)  # however slow the machine, it is killed before its end

        @contextlib.contextmanager
        def show(total, title, *, done=0):
            yield Waiting(total, title, done)

        data = np.load({str(tmp_path / "toy.npz")!r})
        train_concepts(
            data["images"], np.arange(len(data["y"])), data["y"],
            build(DisentangleConfig, {dataclasses.asdict(config)!r}), 1,
            checkpointer=Checkpointer(Path({str(tmp_path / "ck")!r}), "x", every_steps=2),
            progress=show,
        )
    """)
    child = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    while child.poll() is None and not list((tmp_path / "ck").glob("step-*.safetensors")):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.01)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    train = functools.partial(
        train_concepts, toy.images, toy.rows, toy.y, config, 1, progress=quiet
    )
    saver = Checkpointer(tmp_path / "ck", "x", every_seconds=1e9)
    reached = saver.load().step
    assert 0 < reached < 40
    resumed, whole = train(checkpointer=saver), train()
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_same_seed_same_bits_other_seed_other_bits(tiny, toy):
    config = changed(tiny, {"steps": 3, "guide.concepts": 0})
    runs = [
        train_concepts(toy.images, toy.rows, toy.y, config, seed, progress=quiet).state_dict()
        for seed in (0, 0, 1)
    ]
    assert all(torch.equal(v, runs[1][k]) for k, v in runs[0].items())
    assert not all(torch.equal(v, runs[2][k]) for k, v in runs[0].items())


def test_the_penalty_on_copies_is_in_the_loss_with_its_weight(tiny, toy):
    config = changed(tiny, {"steps": 1, "batch": 32, "guide.concepts": 0})
    first = {}
    for weight in (0.0, 3.0):
        config = dataclasses.replace(config, decorrelate=weight)
        log = Losses()
        train_concepts(toy.images, toy.rows, toy.y, config, 0, progress=quiet, log=log)
        first[weight] = log.losses[0]
    untrained = ConceptModel(config, PixelSpace(16, 4), None, 0).train()
    rows = batch_positions(0, "disentangle", 0, 32, len(toy.rows))
    with torch.no_grad():
        scalars = untrained.scalars(signed_view(toy.images, rows), torch.zeros(32, 0))
    penalty = float(squared_correlation_within(scalars))
    assert penalty > 0.05
    assert first[3.0] - first[0.0] == pytest.approx(3 * penalty, abs=1e-4)


class Losses:
    def __init__(self):
        self.losses = []

    def __call__(self, stage, step, *, loss, lr):
        self.losses.append(loss)

    def rewind(self, stage, step):
        pass


def test_without_a_guide_the_labels_change_nothing(tiny, toy):
    config = changed(tiny, {"steps": 3, "guide.concepts": 0})
    a = train_concepts(toy.images, toy.rows, toy.y, config, 0, progress=quiet)
    b = train_concepts(toy.images, toy.rows, 1 - toy.y, config, 0, progress=quiet)
    assert a.guide is None
    assert all(torch.equal(v, b.state_dict()[k]) for k, v in a.state_dict().items())


def test_a_loss_that_is_not_finite_names_the_step(tiny, toy):
    config = changed(tiny, {"lr": 1e30, "clip": 0.0, "warmup": 0, "guide.concepts": 0})
    with pytest.raises(
        TrainingError, match=r"(nan|inf) at step \d+[\s\S]*disentangle.lr \(now 1e\+30"
    ):
        train_concepts(toy.images, toy.rows, toy.y, config, 0, progress=quiet)


def test_no_image_is_a_named_error(tiny, toy):
    with pytest.raises(TrainingError, match="no image"):
        train_concepts(toy.images, toy.rows[:0], toy.y[:0], tiny, 0, progress=quiet)


@pytest.mark.parametrize(
    "change",
    [
        {"space": "vq", "vq.channels": (8, 8, 8), "vq.codebook": 32, "vq.steps": 6, "vq.batch": 4},
        {
            "encoder.kind": "code",
            "tokens.map": "shared",
            "noise_schedule": "scaled_linear",
            "loss": "l1",
        }
        | {"predict": "eps", "min_snr": 0.0, "scalar_norm": False},
        {"ema.scope": "denoiser", "min_snr": 5.0, "lr_schedule": "constant", "unshuffle": 2},
        {"precision": "bf16", "steps": 2},
    ],
)
def test_every_variant_trains_saves_and_loads(tiny, toy, tmp_path, change):
    config = changed(tiny, {"steps": 4} | change)
    model = train_concepts(toy.images, toy.rows[:40], toy.y[:40], config, 0, progress=quiet)
    rows = toy.rows[30:60]
    before = extract(model, toy.images, rows)
    assert before.scalars.shape == (30, 4) and before.tokens.shape == (30, 4, 8)
    save_model(model, tmp_path)
    save_concepts(before, rows, tmp_path)
    after = extract(load_model(tmp_path), toy.images, rows, batch=7)
    np.testing.assert_allclose(after.scalars, before.scalars, rtol=1e-4, atol=1e-5)
    stored, stored_rows = load_concepts(tmp_path)
    assert np.array_equal(stored.tokens, before.tokens) and np.array_equal(stored_rows, rows)


def test_training_rows_get_the_held_out_scalar_and_others_the_mean(tiny, toy):
    config = dataclasses.replace(tiny, steps=1)
    model = train_concepts(toy.images, toy.rows[:100], toy.y[:100], config, 0, progress=quiet)
    guide, rows = model.guide, toy.rows[98:102]
    logits = guide.logits(signed_view(toy.images, rows))
    aligned = (logits - guide.centre[:, None]) / guide.scale[:, None, None] @ guide.basis
    expected = [
        aligned[guide.folds[r], i] if r < 100 else aligned[:, i].mean(0) for i, r in enumerate(rows)
    ]
    got = extract(model, toy.images, rows).scalars[:, -1:]
    np.testing.assert_allclose(got, torch.stack(expected).detach(), rtol=1e-4, atol=1e-5)


def test_damaged_weights_are_refused(tiny, toy, tmp_path):
    config = changed(tiny, {"steps": 1, "guide.concepts": 0})
    save_model(train_concepts(toy.images, toy.rows, toy.y, config, 0, progress=quiet), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RunError, match="cannot be read"):
        load_model(tmp_path)


def test_learning_rate():
    recipe = loop.Recipe(steps=100, batch=1, lr=2.0, warmup=10)
    rates = [loop.learning_rate(recipe, step) for step in range(100)]
    assert rates[0] == pytest.approx(0.2) and rates[9] == rates[10] == 2.0
    assert rates[10:] == sorted(rates[10:], reverse=True) and rates[-1] < 0.01


def test_averaged_weights_follow_the_decay(toy):
    module = torch.nn.Linear(1, 1, bias=False)
    start, seen = module.weight.item(), []

    def loss_at(net, step):
        if step:
            seen.append(net.weight.item())
        return net(torch.ones(1, 1)).sum()

    recipe = loop.Recipe(
        steps=3, batch=1, lr=0.5, lr_schedule="constant", ema=0.5, ema_warmup=False
    )
    from d2cp.core.device import make_accelerator

    loop.fit(module, loss_at, recipe, make_accelerator(), loop.Watch(None, quiet), "x", np.arange)
    last = seen[-1] - 0.5  # AdamW steps of a constant gradient have the length lr
    mean = start
    for value in [*seen, last]:
        mean = 0.5 * mean + 0.5 * value
    assert module.weight.item() == pytest.approx(mean, abs=1e-3)
