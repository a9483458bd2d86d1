"""What needs no finding, made while stage 1 trains: a second process, one thread each.

It is a run of its own in RUN/ahead, with its own lock and checkpoints, that makes the frozen
features and the control. When the turn of such a stage comes, its artifact is taken over from there
if its inputs are the ones that are wanted; else it is made as if there were no second process. The
bits are the same either way: only work that takes one thread in any case is given away.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import torch

from d2cp.config import config_from_dict
from d2cp.core.device import process_state
from d2cp.core.files import read_json, whole_folder, write_json, writing_to
from d2cp.core.memory import keep
from d2cp.core.parent import Child, end_with_parent
from d2cp.core.processes import process_count
from d2cp.core.run_directory import RunDirectory
from d2cp.core.threads import chosen_by_user, cores, threads_for
from d2cp.data.place import Place
from d2cp.errors import RunError
from d2cp.pipeline.context import Context
from d2cp.pipeline.frozen_features import BATCH, features
from d2cp.pipeline.opening import open_run
from d2cp.pipeline.stage_two import control_labels, train

FOLDER, REQUEST, LOG = "ahead", "request.json", "ahead.log"
STAGES = ("features", "erm")
START = "import sys; from d2cp.pipeline.ahead import work; work(sys.argv[1])"


class Ahead:
    """The stages of a run that another process makes, or made before this one was started."""

    def __init__(self, context: Context, child: Child | None = None) -> None:
        self.run, self.log, self.child = context.run.path, context.log, child
        self.folder = self.run / FOLDER

    def take(self, stage: str, inputs: str) -> bool:
        """Whether the stage's artifact came from there; waits while it is being made."""
        made = RunDirectory(self.folder)
        while stage in STAGES:
            ended = self.child is None or self.child.ended()  # asked before the look, not after
            if _whole(made, stage, inputs):
                with whole_folder(self.run / stage) as folder, writing_to(self.run / stage):
                    shutil.copytree(self.folder / stage, folder, dirs_exist_ok=True)
                    # Before the folder has its name: a kill between the two takes over again.
                    self.log.take_over(stage, self.folder / self.log.path.name)
                return True
            if ended:
                return False
            time.sleep(0.2)
        return False

    def close(self) -> None:
        if self.child is not None:
            self.child.stop()

    def clear(self) -> None:
        """The run has taken what it wanted."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _whole(made: RunDirectory, stage: str, inputs: str) -> bool:
    """Whether the artifact is there; a damaged one is none, and is made anew where it is wanted."""
    try:
        return made.has(stage) and made.is_current(stage, inputs)
    except RunError:
        return False


def start_ahead(context: Context, *, control: bool) -> Ahead:
    """The second process, where it helps."""
    run, place = context.run.path, context.place
    if place is None or not _suits(context):
        return Ahead(context)
    request = {
        "place": {"name": place.data, **place.record()},
        "config": context.config.to_dict(),
        "cache": None if context.cache_dir is None else str(context.cache_dir.resolve()),
        "control": control,
    }
    write_json(run / FOLDER / REQUEST, request)
    context.say(f"{', '.join(STAGES[: 1 + control])}: made meanwhile by a second process")
    words = [sys.executable, "-c", START, str(run / FOLDER)]
    return Ahead(context, Child(words, run / FOLDER / LOG, {"OMP_NUM_THREADS": "1"}))


def _suits(context: Context) -> bool:
    """Cores to spare, stage 1 to come, and no step so large that it would use them by itself."""
    config = context.config
    if process_count() > 1 or process_state().device.type != "cpu" or chosen_by_user():
        return False
    if min(cores(), torch.get_num_threads()) < 2:
        return False
    image = 3 * config.debias.image_size**2
    if threads_for(max(BATCH, config.debias.batch_size) * image) > 1:
        return False
    return not context.run.has("mine")


def work(folder: str) -> None:
    """What the second process does."""
    end_with_parent()
    keep()
    path = Path(folder)
    request = read_json(path / REQUEST)
    config = config_from_dict(request["config"])
    table = Place.from_record(request["place"]).table()
    cache = request["cache"]
    with open_run(
        table, path, config, cache_dir=Path(cache) if cache else None, quiet=True, force=True
    ) as context:
        features(context)
        if request["control"]:
            train(context, "erm", control_labels(context))
