"""What the package never does: listen, or need torchvision."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "d2cp"
SERVERS = {"http.server", "socketserver", "wsgiref", "uvicorn", "flask", "fastapi", "aiohttp"}


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_nothing_listens() -> None:
    for path, tree in modules():
        assert not imported(tree) & SERVERS, path
        calls = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        assert not calls & {"listen", "create_server", "start_server"}, path


def test_torchvision_is_not_needed() -> None:
    """Nor does any library that it uses bring it in: it is kept from being found."""
    for path, tree in modules():
        assert not {name for name in imported(tree) if name.split(".")[0] == "torchvision"}, path
    code = (
        "import sys; sys.modules['torchvision'] = None\n"
        "from d2cp.backbone import load_backbone\n"
        "import d2cp.api, d2cp.disentangle.concept_training, d2cp.export.serving\n"
        "assert load_backbone('embedded').grid(28, 28)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
