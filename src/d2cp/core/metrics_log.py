"""metrics.jsonl: one JSON line a logged step, and TensorBoard beside it when it is installed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from d2cp.core.files import write_text, writing_to
from d2cp.core.typed_json import check


class _Line(TypedDict):
    stage: str
    step: int


class MetricsLog:
    def __init__(self, directory: Path, *, tensorboard: bool = False) -> None:
        self.path = directory / "metrics.jsonl"
        self._board: Any = None
        if tensorboard and importlib.util.find_spec("tensorboard"):
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(directory / "tensorboard"))

    def __call__(self, stage: str, step: int, **values: float) -> None:
        line = {"stage": stage, "step": step, **{k: round(float(v), 6) for k, v in values.items()}}
        with writing_to(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"{stage}/{name}", value, step)

    def rewind(self, stage: str, step: int) -> None:
        """Forget what a resumed stage will log again: lines past `step`, a torn last line."""
        if not self.path.exists():
            return
        kept = [
            text
            for text, line in _lines(self.path)
            if line["stage"] != stage or line["step"] <= step
        ]
        write_text(self.path, "".join(text + "\n" for text in kept))

    def take_over(self, stage: str, other: Path) -> None:
        """What another log holds of a stage, in the place of what this one did."""
        self.rewind(stage, -1)
        for _, line in _lines(other) if other.exists() else ():
            if line.pop("stage") == stage:
                step = line.pop("step")
                self(stage, step, **{k: v for k, v in line.items() if type(v) in (int, float)})

    def close(self) -> None:
        if self._board is not None:
            self._board.close()


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every whole line; one that was torn by a kill, or damaged, is passed over."""
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
            check(line, _Line)
        except (ValueError, RecursionError):
            continue
        yield text, line
