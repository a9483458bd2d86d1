"""A dozen kills of the whole method; `benchmarks/kill.py` does as many as one likes."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill.py"


def test_a_dozen_kills_lose_nothing() -> None:
    words = [sys.executable, str(SCRIPT), "--kills", "12", "--jobs", "features", "--seed", "3"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all: 12 kills" in done.stdout and "0 lost" in done.stdout
