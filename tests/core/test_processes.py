"""Real processes: one killed outright, two that share every batch."""

import json
import os
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

SCRIPT = Path(__file__).parents[1] / "helpers" / "train_process.py"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    folder = tmp_path_factory.mktemp("whole")
    return train(folder, checkpoints=False), folder


def environment() -> dict[str, str]:
    """As many threads as here: sums in another order would differ in the last bit."""
    return {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}


@pytest.mark.slow
def test_killed_outright_and_resumed(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path), "checkpoints"], env=environment()
    )
    steps = tmp_path / "steps"
    wanted = random.randrange(1, 30)
    deadline = time.monotonic() + 120
    while not steps.is_dir() or max(map(_step, steps.glob("step-*")), default=0) < wanted:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "model.safetensors").exists()
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
    """Batches of 15 do not even divide by two: group means are those of the global batch."""
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes=2"]
    launch += ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
    launch += [f"--main_process_port={random.randrange(20000, 60000)}"]
    subprocess.run([*launch, str(SCRIPT), str(tmp_path)], env=environment(), check=True)
    expected, folder = whole
    one, two = losses(folder), losses(tmp_path)
    assert len(one) == len(two) == 60
    assert np.allclose(one, two, rtol=0, atol=1e-4)
    assert max(one) - min(one) > 0.05  # a curve, not a constant
    found = load_artifact(tmp_path).trained
    assert [h["step"] for h in found.fitted.history] == [8, 16, 24, 32, 40, 48, 56, 60]
    for name, value in expected.model.state_dict().items():
        assert torch.allclose(found.model.state_dict()[name], value, atol=1e-3)


def losses(folder: Path) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["loss"] for line in lines if "loss" in line]


def _step(path: Path) -> int:
    return int(path.stem.split("-")[1])
