"""Trains a tiny model in a process of its own: to be killed, or launched several times at once.

train_process.py FOLDER kill: checkpoints there, then it waits for its end.
train_process.py FOLDER 2: in two processes, metrics.jsonl and model.safetensors in FOLDER; one
branch after the other, as large steps are computed.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from d2cp.core.checkpoint import Checkpointer
from d2cp.core.metrics_log import MetricsLog
from d2cp.core.processes import is_main, process_count
from d2cp.debias import branch_logits
from d2cp.debias.train import Trained, train_d2cp
from d2cp.debias.trained_files import Artifact, save_artifact
from debias_tiny import CONFIG, backbone, cmnist, labels_of

STEPS = replace(CONFIG, epochs=10, lr=0.03, eta=0.1, batch_size=15, evaluate_every=8)


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
    folder, mode = Path(sys.argv[1]), sys.argv[2]
    if mode == "kill":
        train(folder, checkpoints=True)
        time.sleep(600)
    assert process_count() == int(mode), f"{process_count()} processes, not {mode}"
    branch_logits.APART = 0
    trained = train(folder, checkpoints=False)
    if is_main():
        save_artifact(folder, Artifact(trained, "tiny", ("0", "1"), ("0", "1")))
