"""What dropping patches (debias.keep_patches) costs and gains on coloured digits: preset demo, the
embedded backbone, true colours as the pseudo attribute, so that stage 1 has no part in it.

    python benchmarks/fewer_patches.py --shares 1 0.5 --seeds 0 1 --epochs 5

CPU seconds of a training with its evaluations, and the worst group on the test set in which class
and colour are balanced. The state is chosen on validation by the same groups, as in a run.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

import saved
from d2cp.backbone import load_backbone
from d2cp.config import load_config
from d2cp.data import load_images, load_table
from d2cp.debias.labels import Labels
from d2cp.debias.logits import predict_logits
from d2cp.debias.train import train_d2cp
from d2cp.evaluate.metrics import group_accuracy
from d2cp.pipeline.opening import bound

TITLES = ("patches kept", "CPU seconds", "worst group, each seed", "mean", "mean over groups")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.75, 0.5, 0.25])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=10)
    saved.option(parser)
    given = parser.parse_args()
    config = load_config("demo")
    table, store = load_images(bound(load_table("cmnist"), config), 28, quiet=True)
    assert table.a is not None
    labels = Labels(
        y=table.y,
        classes=table.n_classes,
        train=table.rows("train"),
        val=table.rows("val"),
        a=table.a,
    )
    rows = table.rows("test_balanced")
    settings = replace(config.debias, epochs=given.epochs, use_xrm=False)
    lines = []
    print(" | ".join(TITLES))
    for share in given.shares:
        seconds, worst, means = [], [], []
        for seed in given.seeds:
            backbone = load_backbone(config.backbone, share)
            own = replace(settings, keep_patches=share)
            began = time.process_time()
            trained = train_d2cp(backbone, store, labels, own, seed=seed, quiet=True)
            seconds.append(time.process_time() - began)
            with torch.no_grad():
                found = predict_logits(trained.classifier(), backbone, store, rows, image_size=28)
            groups = table.groups()
            right = found.argmax(1) == table.y[rows]
            scored = group_accuracy(right, groups[rows], groups[labels.train])
            worst.append(100 * scored.worst)
            means.append(100 * float(scored.accuracy.mean()))
        each = ", ".join(f"{value:.1f}" for value in worst)
        line = (f"{share:g}", f"{np.mean(seconds):.0f}", each, f"{np.mean(worst):.1f}")
        lines.append((*line, f"{np.mean(means):.1f}"))
        print(" | ".join(lines[-1]), flush=True)
    saved.save(
        given.save,
        seeds=given.seeds,
        selection="val_pseudo_groups, by true colours",
        tables={"": saved.table(TITLES, lines)},
        about="coloured digits, class and colour balanced in the test",
    )


if __name__ == "__main__":
    main()
