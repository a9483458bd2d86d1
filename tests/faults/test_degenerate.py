"""Data sets with nothing to learn from: a message or a report, from `scan` and from `run`."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2cp.core.files import write_csv
from damage import command
from e2e_settings import arguments

SMALL = {"train_limit": 0, "val_limit": 0, "test_limit": 0, "debias.tier": "'features'"}
SMALL |= {"debias.feature_draws": 1, "debias.epochs": 1, "environments.steps": 5}


def folder_of(folder: Path, labels: list[int], *, equal: bool = False) -> Path:
    draw = np.random.default_rng(0)
    folder.mkdir()
    rows = []
    pixels = draw.integers(0, 255, (28, 28, 3)).astype(np.uint8)
    for index, label in enumerate(labels):
        if not equal:
            pixels = draw.integers(0, 255, (28, 28, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{index}.png")
        rows.append((f"{index}.png", ("train", "train", "val", "test")[index % 4], label))
    write_csv(folder / "metadata.csv", ("filename", "split", "y"), rows)
    return folder


CASES = {
    "equal images": ([0, 1] * 12, True),
    "one class": ([0] * 24, False),
    "two images": ([0, 1], False),
    "a class of one image": ([0] * 23 + [1], False),
    "a class that only tests": ([0, 0, 0, 1] * 6, False),
    "twelve classes of four": ([i // 4 for i in range(48)], False),
}


@pytest.mark.parametrize("case", CASES)
def test_scan_ends_in_a_message_or_a_report(tmp_path: Path, case: str) -> None:
    labels, equal = CASES[case]
    data = folder_of(tmp_path / "data", labels, equal=equal)
    out = tmp_path / "run"
    code, said = command("scan", data, "--out", out, "--cache", tmp_path / "cache", "--quiet")
    assert (code == 0 and (out / "report.html").is_file()) or "expected:" in said, (code, said)


@pytest.mark.parametrize("case", ["equal images", "one class", "two images", "more concepts"])
def test_run_ends_in_a_message_or_a_report(tmp_path: Path, case: str) -> None:
    labels, equal = CASES.get(case, ([0, 1] * 8, False))
    data = folder_of(tmp_path / "data", labels, equal=equal)
    more = {"disentangle.concepts": 40} if case == "more concepts" else {}
    out = tmp_path / "run"
    words = ["--cache", tmp_path / "cache", "--quiet", *arguments(**SMALL, **more)]
    code, said = command("run", data, "--out", out, "--preset", "demo", *words)
    assert (code == 0 and (out / "report.html").is_file()) or "expected:" in said, (code, said)
