"""Features are made once for all seeds beside each other, and only where they are the same."""

from __future__ import annotations

import os

import numpy as np
import pytest

from d2cp.config import load_config
from d2cp.core.files import sha256
from d2cp.data.open_table import load_table
from d2cp.pipeline import frozen_features
from d2cp.pipeline.frozen_features import FILE, features
from d2cp.pipeline.opening import open_run
from e2e_settings import nested

WHOLE = {"train_limit": 0, "val_limit": 0, "test_limit": 0}


@pytest.fixture
def made(monkeypatch) -> list[int]:
    """A mark for every time that features were computed."""
    marks: list[int] = []
    real = frozen_features.frozen_features

    def noted(*words, **named):
        marks.append(1)
        return real(*words, **named)

    monkeypatch.setattr(frozen_features, "frozen_features", noted)
    return marks


def run(path, seed: int, **changes):
    whole = load_table("cmnist")
    table = whole.subset(np.concatenate([whole.rows(s)[:40] for s in ("train", "val", "test")]))
    config = load_config("demo", overrides=nested(**{**WHOLE, "seed": seed, **changes}))
    with open_run(table, path, config, quiet=True) as context:
        return features(context).clone()  # not the file itself: a test damages it


def test_another_seed_takes_the_features_over(tmp_path, made):
    first = run(tmp_path / "seeds/0", 0)
    assert (run(tmp_path / "seeds/1", 1) == first).all() and len(made) == 1
    one, other = (tmp_path / "seeds" / name / "features" / FILE for name in "01")
    assert os.path.samefile(one, other)
    run(tmp_path / "seeds/1", 1)  # current under its own inputs
    assert len(made) == 1


def test_a_disk_without_links_gets_a_copy(tmp_path, made, monkeypatch):
    def refuse(*_):
        raise OSError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    run(tmp_path / "seeds/0", 0)
    run(tmp_path / "seeds/1", 1)
    one, other = (tmp_path / "seeds" / name / "features" / FILE for name in "01")
    assert sha256(one) == sha256(other) and not os.path.samefile(one, other)
    assert len(made) == 1


@pytest.mark.parametrize("changes", [{"debias.resize": 32}, {"train_limit": 30}])
def test_other_settings_or_other_rows_do_not(tmp_path, made, changes):
    run(tmp_path / "seeds/0", 0)
    run(tmp_path / "seeds/1", 1, **changes)
    assert len(made) == 2


def test_damaged_ones_do_not(tmp_path, made):
    first = run(tmp_path / "seeds/0", 0)
    (tmp_path / "seeds/0/features" / FILE).write_bytes(b"damaged")
    assert (run(tmp_path / "seeds/1", 1) == first).all() and len(made) == 2
    (tmp_path / "seeds/0/features/manifest.json").write_text("{")
    (tmp_path / "seeds/1/features/manifest.json").unlink()
    assert (run(tmp_path / "seeds/2", 2) == first).all() and len(made) == 3


def test_runs_that_are_no_seeds_of_one_comparison_share_nothing(tmp_path, made):
    run(tmp_path / "a", 0)
    run(tmp_path / "b", 1)
    assert len(made) == 2
