"""Stages made ahead by a second process: taken over with the same bits, or made here after all."""

from __future__ import annotations

import contextlib

import pytest

from d2cp.config import load_config
from d2cp.core import threads
from d2cp.core.files import sha256
from d2cp.core.parent import Child
from d2cp.data.place import Place
from d2cp.pipeline import ahead
from d2cp.pipeline.frozen_features import features
from d2cp.pipeline.opening import open_run
from d2cp.pipeline.stage_two import control_labels, train
from e2e_settings import nested

FILES = (("features", "features.safetensors"), ("erm", "model.safetensors"))


@pytest.fixture
def two_cores(monkeypatch):
    """As on a machine with a core to spare, whose user has said nothing of threads."""
    for name in threads.CHOSEN_BY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    with threads.using(2):
        yield


@contextlib.contextmanager
def opened(path, **more):
    place = Place.of("cmnist")
    config = load_config("demo", overrides=nested())
    with open_run(place.table(), path, config, place=place, quiet=True, **more) as context:
        yield context


def digests(path):
    return {stage: sha256(path / stage / file) for stage, file in FILES}


def test_what_was_made_ahead_is_taken_over_with_the_same_bits(tmp_path, two_cores, monkeypatch):
    alone, helped = tmp_path / "alone", tmp_path / "helped"
    with opened(alone) as context:
        features(context)
        train(context, "erm", control_labels(context))
    with opened(helped) as context:
        begun = ahead.start_ahead(context, control=True)
        assert begun.child is not None
        context.take = begun.take
        with contextlib.closing(begun):
            monkeypatch.setattr(context.run, "writing", None)  # nothing is made here
            features(context)
            train(context, "erm", control_labels(context))
        begun.clear()
    assert digests(alone) == digests(helped)
    assert (alone / "metrics.jsonl").read_text() == (helped / "metrics.jsonl").read_text() != ""
    assert not (helped / ahead.FOLDER).exists()
    with opened(helped) as context:
        for stage, _ in FILES:
            assert context.run.is_current(stage, context.inputs(stage))


def test_a_second_process_that_dies_costs_nothing_but_time(tmp_path, two_cores, monkeypatch):
    monkeypatch.setattr(ahead, "START", "raise SystemExit(3)")
    with opened(tmp_path) as context:
        begun = ahead.start_ahead(context, control=True)
        assert isinstance(begun.child, Child)
        assert not begun.take("features", context.inputs("features"))
        assert not begun.take("mine", "x"), "a stage that it does not make is not waited for"
        begun.close()


def test_killed_while_it_takes_over_it_takes_over_again(tmp_path, two_cores, monkeypatch):
    """Figures of the log and artifact come together, or neither."""
    with opened(tmp_path / "ahead") as context:
        features(context)
        train(context, "erm", control_labels(context))
    logged = (tmp_path / "ahead" / "metrics.jsonl").read_text()
    with opened(tmp_path) as context:
        begun = ahead.Ahead(context)
        assert begun.take("features", context.inputs("features"))
        inputs = context.inputs("erm")
        with monkeypatch.context() as patch:
            patch.setattr(context.log, "take_over", _killed)
            with pytest.raises(RuntimeError, match="killed"):
                begun.take("erm", inputs)
        assert not context.run.has("erm")
        assert begun.take("erm", inputs)
        assert (tmp_path / "metrics.jsonl").read_text() == logged != ""


def _killed(*_):
    raise RuntimeError("killed")


@pytest.mark.parametrize("damage", ["manifest.json", "features.safetensors"])
def test_a_damaged_artifact_is_not_taken_over_and_stops_nothing(tmp_path, two_cores, damage):
    with opened(tmp_path / "ahead") as context:
        features(context)
    with opened(tmp_path) as context:
        begun, inputs = ahead.Ahead(context), context.inputs("features")
        path = tmp_path / "ahead" / "features" / damage
        path.write_bytes(path.read_bytes()[:-40])
        assert not begun.take("features", inputs)
        features(context)
        assert context.run.is_current("features", inputs)


def test_none_is_started_where_the_user_chose_threads_or_steps_are_large(tmp_path, two_cores):
    with opened(tmp_path) as context:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OMP_NUM_THREADS", "2")
            assert ahead.start_ahead(context, control=True).child is None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threads, "cores", lambda: 2)
            patch.setattr(threads, "GRAIN", 1000)
            assert ahead.start_ahead(context, control=True).child is None
