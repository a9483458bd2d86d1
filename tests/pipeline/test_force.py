"""Settings bind when they have taken effect; --force redoes stages and never reads old states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from d2cp.config import Config, load_config
from d2cp.data import load_table
from d2cp.data.table import Table
from d2cp.errors import RunError
from d2cp.pipeline.context import Context
from d2cp.pipeline.opening import open_run


@pytest.fixture(scope="module")
def table() -> Table:
    return load_table("cmnist", limit=40)


def open_here(table: Table, out: Path, config: Config, *, force: bool = False):
    return open_run(table, out, config, quiet=True, force=force, console=Console(quiet=True))


def make_stage(context: Context, name: str, stop_at: int | None = None) -> int:
    """A stage of ten steps that saves each of them, its parts too; returns the steps it took."""
    inputs = context.inputs(name, without={"scan"})
    taken = 0

    def make(folder: Path) -> None:
        nonlocal taken
        saver = context.checkpointer(name, inputs)
        part = replace(saver, directory=saver.directory / "guide-0")
        for one in (part, saver):
            found = one.load()
            for step in range(found.step if found else 0, 10):
                if step == stop_at and one is saver:
                    raise KeyboardInterrupt
                taken += one is saver
                one.save(step + 1, {"w": torch.ones(1)}, {})
        (folder / "done.txt").write_text("done")

    context.stage(name, inputs, make)
    return taken


def changed(config: Config) -> Config:
    return replace(config, disentangle=replace(config.disentangle, steps=7))


def test_force_redoes_a_stage_after_a_finished_run(table: Table, tmp_path: Path) -> None:
    config, out = load_config("demo"), tmp_path / "run"
    with open_here(table, out, config) as context:
        assert make_stage(context, "disentangle") == 10
    assert not (out / "checkpoints" / "disentangle").exists()  # nothing of its parts either
    with (
        pytest.raises(RunError, match=r"disentangle\.steps"),
        open_here(table, out, changed(config)),
    ):
        pass
    with open_here(table, out, changed(config), force=True) as context:
        assert make_stage(context, "disentangle") == 10
    with open_here(table, out, changed(config)):
        pass  # recorded: the new command goes on without --force


def test_a_stale_checkpoint_is_refused_and_the_advice_works(table: Table, tmp_path: Path) -> None:
    config, out = load_config("demo"), tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), open_here(table, out, config) as context:
        make_stage(context, "disentangle", stop_at=6)
    with (
        pytest.raises(RunError, match="another configuration") as refused,
        open_here(table, out, changed(config)) as context,
    ):
        make_stage(context, "disentangle")
    assert "--force" in refused.value.remedy
    with open_here(table, out, changed(config), force=True) as context:
        assert make_stage(context, "disentangle") == 10


def test_a_forced_run_that_is_killed_leaves_the_old_command_valid(
    table: Table, tmp_path: Path
) -> None:
    config, out = load_config("demo"), tmp_path / "run"
    with open_here(table, out, config) as context:
        make_stage(context, "disentangle")
    with (
        pytest.raises(KeyboardInterrupt),
        open_here(table, out, changed(config), force=True) as context,
    ):
        make_stage(context, "disentangle", stop_at=3)
    with open_here(table, out, config) as context:
        assert make_stage(context, "disentangle") == 0  # unchanged, kept
    with open_here(table, out, changed(config), force=True) as context:
        assert make_stage(context, "disentangle") == 7  # and the forced one goes on at step 3


def test_discover_then_run_with_another_backbone(table: Table, tmp_path: Path) -> None:
    config, out = load_config("demo"), tmp_path / "run"
    with open_here(table, out, config) as context:
        make_stage(context, "disentangle")
    with open_here(table, out, replace(config, backbone="elsewhere")) as context:
        assert make_stage(context, "disentangle") == 0
        assert context.run.description["config"]["backbone"] == "elsewhere"
