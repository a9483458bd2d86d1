"""A few of the changed inputs of `benchmarks/fuzz.py` for every quick reader."""

import random
import shutil
from pathlib import Path

import pytest

from d2cp.data import load_table
from d2cp.data.images import UnreadableError
from d2cp.errors import D2CPError
from fuzz_readers import READERS
from report_artifacts import write_run

QUICK = (
    "images",
    "metadata",
    "settings",
    "corrections",
    "manifest",
    "predictions",
    "cells",
    "archives",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fuzz") / "run"
    write_run(path, load_table("cmnist", limit=8), audit=True)
    return path


@pytest.mark.parametrize("name", QUICK)
def test_a_changed_input_is_read_or_refused(name: str, run: Path, tmp_path: Path) -> None:
    prepare, read, _ = READERS[name]
    prepare(tmp_path, run)
    refused = 0
    for index in range(150):
        try:
            read(tmp_path, random.Random(f"test/{name}/{index}"))
        except (D2CPError, UnreadableError):
            refused += 1
    assert refused > 20, "the changes do damage"


def test_no_metadata_reaches_a_file_outside_its_folder(tmp_path: Path, run: Path) -> None:
    prepare, _, _ = READERS["metadata"]
    prepare(tmp_path, run)
    text = (tmp_path / "good.csv").read_text().replace("3.png", "../secret.png")
    (tmp_path / "data" / "metadata.csv").write_text(text)
    with pytest.raises(D2CPError, match=r"\.\./secret"):
        load_table(tmp_path / "data")
    shutil.rmtree(tmp_path / "data")
