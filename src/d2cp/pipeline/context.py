"""What every stage of one run shares: its directory, configuration, table, images and log."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from d2cp import __version__
from d2cp.backbone.identity import backbone_key
from d2cp.config import Config
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.files import fingerprint
from d2cp.core.metrics_log import MetricsLog
from d2cp.core.processes import from_main, is_main, process_count, wait_for_all
from d2cp.core.run_directory import RunDirectory
from d2cp.core.time_spent import TimeSpent
from d2cp.data.image_access import load_images
from d2cp.data.place import Place
from d2cp.data.store import ImageStore
from d2cp.data.table import Table
from d2cp.pipeline.stages import stage

Take = Callable[[str, str], bool]  # stage, inputs -> whether its artifact is there now


@dataclass
class Context:
    """Made by `pipeline.opening.open_run`, handed from stage to stage."""

    run: RunDirectory
    config: Config
    table: Table
    console: Console
    cache_dir: Path | None = None
    quiet: bool = False
    force: bool = False
    tensorboard: bool = False
    place: Place | None = None
    take: Take = lambda name, inputs: False  # an artifact that was made ahead
    _stores: dict[tuple[int, str], ImageStore] = field(default_factory=dict)

    @cached_property
    def log(self) -> MetricsLog:
        return MetricsLog(self.run.path, tensorboard=self.tensorboard)

    @property
    def blind(self) -> Table:
        """The table without true attributes: what the stages that learn are handed."""
        return self.table.without_attribute()

    def images(self, size: int, resize: str = "cover") -> ImageStore:
        """All rows of the table as size x size squares."""
        key = size, resize
        if key not in self._stores:
            table, store = load_images(self.table, size, self.cache_dir, resize, quiet=self.quiet)
            if len(table) != len(self.table):
                raise RuntimeError("a row that was readable at one size is not at another")
            self._stores[key] = store
        return self._stores[key]

    def inputs(self, name: str, details: Any = None, *, without: Collection[str] = ()) -> str:
        """The identity of all that a stage's result depends on: as declared in `stages`, and
        `details` that no configuration holds; `without` are stages that this run leaves out."""
        declared = stage(name)
        after = [other for other in declared.after if other not in without]
        before = {other: self.run.manifest(other)["inputs"] for other in after}
        config = self.config
        if "backbone" in declared.reads:
            config = replace(config, backbone=backbone_key(config.backbone))
        settings = declared.settings(config)
        return fingerprint([name, __version__, self.config.seed, settings, details, before])

    def checkpointer(self, stage: str, inputs: str) -> Checkpointer:
        folder = self.run.path / "checkpoints" / stage
        return Checkpointer(folder, identity=inputs, force=self.force)

    def say(self, text: str) -> None:
        if not self.quiet and is_main():
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def stage(
        self, name: str, inputs: str, make: Callable[[Path], None], *, alone: bool = False
    ) -> Path:
        """The stage's artifact: kept when it is current, made otherwise.

        Where there are several processes they make it together and the main one's is kept, or,
        `alone`, the main one makes it while the others wait.
        """
        current = from_main(self.run.is_current(name, inputs) if is_main() else None)
        if current:
            self.say(f"{name}: unchanged, kept")
            if is_main():
                self.run.record(stage(name).reads, self.config.to_dict())
            return self.run.path / name
        if is_main() and process_count() == 1 and self.take(name, inputs):
            self.run.record(stage(name).reads, self.config.to_dict())
            self.say(f"{name}: taken over")
            return self.run.path / name
        damaged = self.run.damage(name) if is_main() and self.run.has(name) else ""
        self.say(f"{name}: started{f' again: {damaged}' if damaged else ''}")
        if not is_main():
            if not alone:
                with tempfile.TemporaryDirectory() as scratch:
                    make(Path(scratch))
            return self._finished(name)
        spent = TimeSpent(self.run.path / "checkpoints" / name / "seconds")
        with spent, self.run.writing(name, inputs, spent.before) as folder:
            make(folder)
        self.run.record(stage(name).reads, self.config.to_dict())
        self.checkpointer(name, inputs).clear()
        return self._finished(name)

    def _finished(self, name: str) -> Path:
        wait_for_all()
        self.say(f"{name}: done in {self.run.manifest(name)['seconds']:.0f} s")
        return self.run.path / name
