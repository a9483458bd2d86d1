"""Checkpoints of a training loop: safetensors only, written atomically, the last two kept.

A damaged newest checkpoint is refused and the one before it is used, with a warning: the loop then
repeats some steps and, since every draw is a function of the step, arrives at the same bits.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from d2cp.core.files import write_bytes
from d2cp.errors import RunError, TrainingError

_NAME = re.compile(r"step-(\d{9})\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    step: int
    tensors: dict[str, Tensor]
    state: dict[str, Any]


@dataclass
class Checkpointer:
    """Saves and finds the checkpoints of one stage. `identity` names config, data and version;
    with `force`, checkpoints of another identity are thrown away instead of refused."""

    directory: Path
    identity: str
    every_seconds: float = 60.0
    first_seconds: float = 5.0
    every_steps: int | None = None
    keep: int = 2
    force: bool = False
    _last: float = field(default_factory=time.monotonic)
    _saved: bool = False

    def due(self, step: int) -> bool:
        if self.every_steps is not None:
            return step % self.every_steps == 0
        # Soon after the start, too: a first minute that is lost is a minute all the same.
        wait = self.every_seconds if self._saved else min(self.first_seconds, self.every_seconds)
        return time.monotonic() - self._last >= wait

    def save(
        self,
        step: int,
        tensors: dict[str, Tensor],
        state: dict[str, Any],
        remedy: str = "lower the learning rate",
    ) -> None:
        """`remedy`: what to do about weights that are not finite."""
        plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        self._require_finite(step, plain, remedy)
        header = {"step": str(step), "identity": self.identity, "state": json.dumps(state)}
        header["digest"] = _digest(plain, header["state"])
        header["whole"] = _header_digest(header)
        write_bytes(self._path(step), save(plain, metadata=header))
        for old in self._paths()[self.keep :]:
            old.unlink(missing_ok=True)
        self._last, self._saved = time.monotonic(), True

    def last_good(self) -> str:
        """The newest checkpoint, in words for an error."""
        found = self._paths()
        return f"the last good checkpoint is {found[0]}" if found else "there is no checkpoint yet"

    def load(self) -> Checkpoint | None:
        """The newest checkpoint that is whole, or None when there is none at all."""
        for path in self._paths():
            try:
                with safe_open(path, "pt") as file:
                    header = file.metadata() or {}
                    tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                step, state = int(header["step"]), json.loads(header["state"])
                if header["digest"] != _digest(tensors, header["state"]):
                    raise ValueError("its bytes have changed")
                # The digest is of weights and state; step and identity are in the header alone.
                if header.get("whole", _header_digest(header)) != _header_digest(header):
                    raise ValueError("its header has changed")
                if path != self._path(step):
                    raise ValueError(f"it says that it is of step {step}")
            except (SafetensorError, OSError, KeyError, ValueError, RecursionError) as error:
                warnings.warn(
                    f"{path} is damaged ({error}); going back to the checkpoint before it",
                    stacklevel=2,
                )
                continue
            if header.get("identity") != self.identity:
                if not self.force:
                    raise RunError(
                        f"{path} was made with another configuration, data set or version",
                        expected=f"identity {self.identity}, found {header.get('identity')}",
                        remedy="use the settings it was started with, another --out, or --force "
                        "to train this stage from its beginning",
                    )
                self._forget()
                return None
            return Checkpoint(step, tensors, state)
        return None

    def _require_finite(self, step: int, tensors: dict[str, Tensor], remedy: str) -> None:
        """A finite loss may still have left weights that are not: such a state is not kept."""
        for name, value in tensors.items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise TrainingError(
                    f"{name} is no longer finite after step {step}; {self.last_good()}",
                    expected="finite weights",
                    remedy=remedy,
                )

    def clear(self) -> None:
        """Remove all checkpoints, of the stage's parts too: the artifact has taken their place."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _forget(self) -> None:
        """Checkpoints of other settings, also those with more steps, must not outlive new ones."""
        for path in self._paths():
            path.unlink(missing_ok=True)

    def _path(self, step: int) -> Path:
        return self.directory / f"step-{step:09d}.safetensors"

    def _paths(self) -> list[Path]:
        if not self.directory.is_dir():
            return []
        return sorted(
            (p for p in self.directory.iterdir() if _NAME.fullmatch(p.name)), reverse=True
        )


def _digest(tensors: dict[str, Tensor], state: str) -> str:
    digest = hashlib.sha256(state.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _header_digest(header: dict[str, str]) -> str:
    told = "\n".join(header.get(name, "") for name in ("step", "identity", "digest"))
    return hashlib.sha256(told.encode()).hexdigest()


def optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """An optimizer's state as flat tensors and JSON-able values."""
    whole = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    scalars: dict[str, Any] = {}
    for index, entries in whole["state"].items():
        for name, value in entries.items():
            key = f"optimizer.{index}.{name}"
            if isinstance(value, Tensor):
                tensors[key] = value
            elif value is not None:
                scalars[key] = value
    return tensors, {"scalars": scalars, "groups": whole["param_groups"]}


def load_optimizer_state(
    optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], state: dict[str, Any]
) -> None:
    entries: dict[int, dict[str, Any]] = {}
    flat = {k: v for k, v in tensors.items() if k.startswith("optimizer.")} | state["scalars"]
    for key, value in flat.items():
        _, index, name = key.split(".", 2)
        entries.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": entries, "param_groups": state["groups"]})
