"""Real processes: one killed outright, two that share every batch."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from d2cp.debias.train import Trained
from d2cp.debias.trained_files import load_artifact
from train_process import train
from two_ranks import two_ranks

HELPERS = Path(__file__).parents[1] / "helpers"
SCRIPT = HELPERS / "train_process.py"
CONCEPTS = {
    **{"size": 16, "concepts": 4, "encoder.width": 4, "encoder.hidden": 16, "tokens.hidden": [8]},
    **{"tokens.dim": 8, "unet.channels": [16], "unet.attention": [0], "unet.heads": 2},
    **{"steps": 12, "batch": 15, "warmup": 2, "guide.steps": 10, "guide.width": 4},
    **{"guide.batch": 15, "guide.flip": True},
}
KINDS: dict[str, dict] = {
    "guide": {},
    "batch norm": {"encoder.kind": "code", "guide.concepts": 0},
    "autoencoder": {
        **{"space": "vq", "vq.channels": [8, 8, 8], "vq.codebook": 32, "vq.steps": 10},
        **{"vq.batch": 5},
    },
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return train(folder, checkpoints=False), folder


@pytest.mark.slow
def test_killed_outright_and_resumed(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path), "kill"])
    steps = tmp_path / "steps"
    wanted = random.randrange(1, 30)
    while not steps.is_dir() or max(map(_step, steps.glob("step-*")), default=0) < wanted:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    resumed = train(tmp_path, checkpoints=True)
    expected, folder = whole
    for name, value in expected.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value)
    assert resumed.fitted == expected.fitted
    assert losses(tmp_path) == losses(folder)


@pytest.mark.slow
def test_two_processes_follow_the_loss_curve_of_one(
    whole: tuple[Trained, Path], tmp_path: Path
) -> None:
    """Batches of 15 do not even divide by two: group means are those of the global batch. The two
    compute one branch after the other, the one both together."""
    two_ranks("torchrun", SCRIPT, tmp_path, 2)
    expected, folder = whole
    one, two = losses(folder), losses(tmp_path)
    assert len(one) == len(two) == 60
    assert np.allclose(one, two, rtol=0, atol=1e-4)
    assert max(one) - min(one) > 0.05  # a curve, not a constant
    found = load_artifact(tmp_path).trained
    assert [h["step"] for h in found.fitted.history] == [8, 16, 24, 32, 40, 48, 56, 60]
    for name, value in expected.model.state_dict().items():
        assert torch.allclose(found.model.state_dict()[name], value, atol=1e-3)


def test_sums_rows_normalisation_and_features_over_two_processes_are_those_of_the_whole() -> None:
    two_ranks("torchrun", HELPERS / "collective_process.py")


@pytest.mark.slow
def test_two_processes_learn_the_concepts_of_one(tmp_path: Path) -> None:
    folders, words = {}, json.dumps({kind: CONCEPTS | more for kind, more in KINDS.items()})
    for ranks in (1, 2):
        folders[ranks] = tmp_path / str(ranks)
        folders[ranks].mkdir()
    script = HELPERS / "concept_process.py"
    subprocess.run([sys.executable, script, folders[1], "1", words], check=True)
    two_ranks("torchrun", script, folders[2], 2, words)
    for kind in KINDS:
        one, two = (json.loads((f / f"{kind}.json").read_text()) for f in folders.values())
        assert [line[:2] for line in one] == [line[:2] for line in two], kind
        assert {line[0] for line in one} >= {"disentangle"}
        assert len(one) >= 12
        found, expected = ([line[2] for line in lines] for lines in (two, one))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4, err_msg=kind)
        alone, shared = (np.load(f / f"{kind}.npz") for f in folders.values())
        for name in ("scalars", "tokens"):
            np.testing.assert_allclose(
                shared[name], alone[name], rtol=0, atol=1e-4, err_msg=f"{kind}: {name}"
            )


def losses(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def _step(path: Path) -> int:
    return int(path.stem.split("-")[1])
