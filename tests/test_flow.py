"""Nothing reaches back: a package imports only packages below it, checked on the import graph."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import d2cp

ROOT = Path(d2cp.__file__).parent
# From the bottom to the top; packages of one line do not import each other.
LAYERS = (
    ("errors",),
    ("core",),
    ("executors",),
    ("config",),
    ("data",),
    ("backbone",),
    ("disentangle", "mine", "environments"),
    ("scan",),
    ("debias",),
    ("evaluate",),
    ("export",),
    ("pipeline",),
    ("compare",),
    ("methods",),
    ("report",),
    ("reproduce",),
    ("api",),
    ("estimator",),
    ("cli",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem in LEVEL)


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Packages of d2cp that a module imports, wherever in the file; types count too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "d2cp":
                names = [f"d2cp.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("d2cp.")}
    return found & LEVEL.keys()


def test_every_package_has_its_place() -> None:
    assert {package_of(path) for path in MODULES} == LEVEL.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_against_the_flow(path: Path) -> None:
    own = package_of(path)
    wrong = {name for name in imported(path) if name != own and LEVEL[name] >= LEVEL[own]}
    assert not wrong, f"{path.relative_to(ROOT)} imports {sorted(wrong)}, above or beside it"
