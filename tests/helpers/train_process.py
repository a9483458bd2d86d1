"""Trains a tiny model in a process of its own: to be killed, or launched several times at once.

train_process.py FOLDER [checkpoints]: writes metrics.jsonl and model.safetensors to FOLDER.
"""

import sys
from dataclasses import replace
from pathlib import Path

from accelerate import Accelerator

from d2cp.core.checkpoint import Checkpointer
from d2cp.core.metrics_log import MetricsLog
from d2cp.debias.train import Trained, train_d2cp
from d2cp.debias.trained_files import Artifact, save_artifact
from debias_tiny import CONFIG, backbone, cmnist, labels_of

STEPS = replace(CONFIG, epochs=10, lr=0.3, eta=0.1, batch_size=15, evaluate_every=8)


def train(folder: Path, checkpoints: bool) -> Trained:
    table, store = cmnist()
    return train_d2cp(
        backbone(),
        store,
        labels_of(table),
        STEPS,
        seed=3,
        checkpointer=Checkpointer(folder / "steps", "test", every_steps=1) if checkpoints else None,
        log=MetricsLog(folder),
        log_every=1,
        quiet=True,
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    trained = train(folder, checkpoints="checkpoints" in sys.argv)
    if Accelerator().is_main_process:
        save_artifact(folder, Artifact(trained, "tiny", ("0", "1"), ("0", "1")))
