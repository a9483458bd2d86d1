"""README's pictures: small, in pairs, and drawn from what a run holds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2cp.data import load_table
from report_artifacts import write_run
from tools.pictures.dots import dots_svg
from tools.pictures.rows import WIDTH, Line, draw_lines
from tools.pictures.theme import LARGEST, THEMES, save_small

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


def test_pictures_are_small_and_come_light_and_dark():
    files = sorted(PICTURES.iterdir())
    assert len(files) >= 8
    assert max(path.stat().st_size for path in files) <= LARGEST
    assert sum(path.stat().st_size for path in files) <= 1_200_000
    stems = {path.name.rpartition("-")[0]: path.suffix for path in files}
    for stem, suffix in stems.items():
        assert all((PICTURES / f"{stem}-{theme.name}{suffix}").is_file() for theme in THEMES)


def test_lines_are_set_one_under_the_other_and_leave_the_ground_free():
    white = np.full((8, 8, 3), 255, np.uint8)
    lines = [Line("above", [white] * 4), Line("low", [white] * 4, right="high")]
    drawn = np.asarray(draw_lines(lines, THEMES[0]))
    assert drawn.shape[1:] == (WIDTH, 4)
    assert (drawn[..., 3] == 0).any()
    shares = (drawn[..., :3].min(-1) == 255).mean(1)
    assert (shares > 0.9).sum() > 300  # two rows of images, nearly as wide as the picture


def test_a_picture_that_cannot_be_small_is_refused(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (900, 900, 3), dtype=np.uint8)
    with pytest.raises(ValueError, match="bytes"):
        save_small(Image.fromarray(noise), tmp_path / "noise.png")
    assert not list(tmp_path.iterdir())


def test_dots_stand_where_the_results_say(tmp_path):
    table = load_table("cmnist").subsample({"train": 40, "val": 20, "test": 40})
    run = write_run(tmp_path / "run", table)
    drawn = dots_svg(run, THEMES[0])
    said = re.search(r"<title>(.*?)</title>", drawn)
    assert said is not None and "worst group" in said.group(1)
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn)]
    shares = [int(p) for p in re.findall(r"(\d+)%", said.group(1))]
    assert len(places) == len(shares) + 2  # and two in the legend
    order = np.argsort(shares, kind="stable")
    assert np.all(np.diff(np.array(places[2:])[order]) > -6)
