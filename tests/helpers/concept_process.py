"""Trains tiny concept models in one process or several, in float64: there the same arithmetic in
another order stays the same, where in float32 a few steps make a difference of one.

concept_process.py FOLDER RANKS {NAME: SETTINGS, …}: NAME.json (losses) and NAME.npz (concepts).
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.strict import changed
from d2cp.core.processes import is_main, process_count
from d2cp.data import pixels
from d2cp.disentangle import concept_loop
from d2cp.disentangle.concept_training import train_concepts
from d2cp.disentangle.extract import extract


class Losses:
    def __init__(self):
        self.lines = []

    def __call__(self, stage, step, *, loss, lr):
        self.lines.append([stage, step, loss])

    def rewind(self, stage, step):
        pass


def main(folder: Path, ranks: int, kinds: dict[str, dict]) -> None:
    assert process_count() == ranks, f"{process_count()} processes, not {ranks}"
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    signed = pixels.to_signed
    pixels.to_signed = lambda images: signed(images).double()
    concept_loop.LOG_EVERY = 1
    draw = np.random.default_rng(0)
    y = draw.integers(0, 2, 60)
    images = draw.integers(0, 60, (60, 16, 16, 3)).astype(np.uint8)
    images[np.arange(60), :, :, y] += 120
    rows = np.arange(60)
    for name, settings in kinds.items():
        log = Losses()
        model = train_concepts(images, rows, y, changed(DisentangleConfig(), settings), 2, log=log)
        found = extract(model, images, rows, batch=25)
        if is_main():
            (folder / f"{name}.json").write_text(json.dumps(log.lines))
            np.savez(folder / f"{name}.npz", scalars=found.scalars, tokens=found.tokens)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
