"""Make transformers know our model type when it is imported, and not before.

`import d2cp` must stay quick, and importing transformers is not. So a finder waits for the module
in which transformers keeps its list of model types; when that has been loaded, by whomever, the
configuration is added to it. The model class itself, which needs torch, is registered when a
configuration of ours is made.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

AWAITED = "transformers.models.auto.configuration_auto"


class _Then(Loader):
    """Loads a module, then imports another."""

    def __init__(self, loader: Loader, after: str) -> None:
        self.loader, self.after = loader, after

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        import_module(self.after)


class _Finder(MetaPathFinder):
    def __init__(self, registers: str) -> None:
        self.registers = registers

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != AWAITED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self.registers)
        return spec


def register_with_transformers(registers: str) -> None:
    """Import the module `registers` once transformers' model types are there."""
    if AWAITED in sys.modules:
        import_module(registers)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(registers))
