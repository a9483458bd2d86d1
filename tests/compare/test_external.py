"""The example of the guide, taken from there and run as a package of its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from d2cp.compare.registry import chosen, methods
from d2cp.errors import ConfigError

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "my-method.md"


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    return found


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The example with the metadata that an installer would write."""

    def install(code: str) -> None:
        (tmp_path / "d2cp_smooth.py").write_text(code)
        info = tmp_path / "d2cp_smooth-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: d2cp-smooth\nVersion: 1.0\n")
        (entry,) = re.findall(r'smooth = "(.*?)"', block("toml"))
        (info / "entry_points.txt").write_text(f"[d2cp.methods]\nsmooth = {entry}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        methods.cache_clear()

    yield install
    methods.cache_clear()
    sys.modules.pop("d2cp_smooth", None)


def test_the_example_is_short_found_and_runs(installed, make_task):
    code = block("python")
    assert len(code.splitlines()) <= 30
    installed(code)
    method = methods()["smooth"]
    assert method in chosen("all") and chosen("erm,smooth")[1] is method
    groups = np.random.default_rng(0).integers(4, size=400)
    task = make_task(groups=groups, values=2, classes=2, budget=3000)
    predictor = method.fit(task, method.spec.values())
    right = predictor.logits(task.val).argmax(1).numpy() == task.y[task.val]
    assert right.mean() > 0.8
    other = make_task(groups=groups, values=2, classes=2, budget=3000)
    hard = methods()["erm"].fit(other, {})
    assert not torch.equal(hard.logits(task.val), predictor.logits(task.val))


def test_a_taken_name_is_refused(installed):
    installed(block("python").replace('name="smooth"', 'name="erm"'))
    with pytest.raises(ConfigError, match="'erm'"):
        methods()


def test_unknown_method_suggests_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'group_dro'"):
        chosen("erm,grup_dro")
