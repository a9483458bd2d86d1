"""Python in README and the guides: its imports exist, and the guide's own method works."""

from __future__ import annotations

import ast
from importlib import import_module

import numpy as np
import pytest

import documentation
from d2cp.compare.registry import methods

PAGES = documentation.pages()
EXAMPLES = [
    (page, body) for page, text in PAGES.items() for body in documentation.blocks(text, "python")
]


def test_there_are_examples():
    assert {"README.md", "docs/guides/my-method.md"} <= {page for page, _ in EXAMPLES}


@pytest.mark.parametrize(("page", "body"), EXAMPLES, ids=lambda value: value[:24])
def test_python_parses_and_its_imports_exist(page, body):
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.ImportFrom) and node.module:
            held = import_module(node.module)
            for alias in node.names:
                assert hasattr(held, alias.name), f"{page}: {node.module}.{alias.name}"


def test_the_method_of_the_guide_learns_its_task(make_task):
    body = documentation.blocks(PAGES["docs/guides/my-method.md"], "python")[0]
    space: dict[str, object] = {}
    exec(body, space)
    method = space["Smooth"]()  # type: ignore[operator]
    assert method.spec.name not in methods()
    assert "features" in method.spec.tiers
    groups = np.random.default_rng(0).integers(4, size=200)
    task = make_task(groups=groups, values=2, classes=2)
    predictor = method.fit(task, {name: p.default for name, p in method.spec.params.items()})
    logits = predictor.logits(task.val)
    assert logits.shape == (len(task.val), 2)
    assert (np.asarray(logits).argmax(1) == task.y[task.val]).mean() > 0.7
