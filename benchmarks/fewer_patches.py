"""What dropping patches (debias.keep_patches) costs and gains: CPU seconds and the worst group.

    python benchmarks/fewer_patches.py --shares 1 0.5 --seeds 0 1 --epochs 5
    python benchmarks/fewer_patches.py --photos BIRDS --backbone VIT-S14 --shares 1 0.5

Coloured digits: preset demo, the embedded backbone, true colours as the pseudo attribute, so that
stage 1 has no part in it; the test set has class and colour balanced. Photographs: frozen features
and the class head solved on them, as `photo-cpu` does it, once plainly and once with the groups of
class and true attribute in equal shares. States and decays are chosen on validation by the same
groups.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

import saved
from d2cp.backbone import load_backbone
from d2cp.config import load_config
from d2cp.data import Table, load_images, load_table
from d2cp.debias.class_solution import class_head
from d2cp.debias.labels import Labels
from d2cp.debias.logits import predict_logits
from d2cp.debias.train import train_d2cp
from d2cp.evaluate.metrics import GroupAccuracy, group_accuracy
from d2cp.pipeline.frozen_features import frozen_features
from d2cp.pipeline.opening import bound

TITLES = ("patches kept", "CPU seconds", "worst group, each seed", "mean", "mean over groups")
PHOTO_TITLES = ("patches kept", "CPU seconds of the features", "head", "worst group", "mean")
DECAYS = (0.01, 0.1, 1.0, 10.0)


def true_groups(table: Table) -> Labels:
    assert table.a is not None
    train, val = table.rows("train"), table.rows("val")
    return Labels(y=table.y, classes=table.n_classes, train=train, val=val, a=table.a)


def scored(table: Table, split: str, said: Tensor) -> GroupAccuracy:
    """Groups of a split, of which the training images have any."""
    rows, groups = table.rows(split), table.groups()
    right = said.argmax(1).numpy() == table.y[rows]
    return group_accuracy(right, groups[rows], groups[table.rows("train")])


def digits(given: argparse.Namespace) -> list[Sequence[str]]:
    config = load_config("demo")
    table, store = load_images(bound(load_table("cmnist"), config), 28, quiet=True)
    labels, rows = true_groups(table), table.rows("test_balanced")
    settings = replace(config.debias, epochs=given.epochs, use_xrm=False)
    lines: list[Sequence[str]] = []
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
            result = scored(table, "test_balanced", torch.as_tensor(found))
            worst.append(100 * result.worst)
            means.append(100 * float(result.accuracy.mean()))
        each = ", ".join(f"{value:.1f}" for value in worst)
        line = (f"{share:g}", f"{np.mean(seconds):.0f}", each, f"{np.mean(worst):.1f}")
        lines.append((*line, f"{np.mean(means):.1f}"))
        print(" | ".join(lines[-1]), flush=True)
    return lines


def photographs(given: argparse.Namespace) -> list[Sequence[str]]:
    whole = load_config("photo-cpu").debias
    table, store = load_images(
        load_table(given.photos, limit=given.limit), whole.resize, quiet=True
    )
    labels = true_groups(table)
    lines: list[Sequence[str]] = []
    for share in given.shares:
        began = time.process_time()
        x = frozen_features(
            load_backbone(given.backbone, share),
            store,
            np.arange(len(table)),
            whole.image_size,
            quiet=True,
        ).double()
        seconds = time.process_time() - began
        own = x[torch.from_numpy(labels.train)]
        x = (x - own.mean(0)) / own.std(0).clamp(min=1e-6)
        for name, balanced in (("plain", False), ("groups in equal shares", True)):
            settings = replace(
                whole, use_pseudo=balanced, dual_branch=False, use_xrm=False, read_out="balanced"
            )
            tried = []
            for decay in DECAYS:
                chosen = replace(settings, class_decay=decay)
                head = class_head(x[torch.from_numpy(labels.train)], labels, chosen)
                answers = {
                    split: x[torch.from_numpy(table.rows(split))] @ head[:, :-1].T + head[:, -1]
                    for split in ("val", "test")
                }
                tried.append((scored(table, "val", answers["val"]).worst, answers["test"]))
            result = scored(table, "test", max(tried, key=lambda one: one[0])[1])
            shown = (f"{100 * result.worst:.1f}", f"{100 * float(result.accuracy.mean()):.1f}")
            lines.append((f"{share:g}", f"{seconds:.0f}", name, *shown))
            print(" | ".join(lines[-1]), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.75, 0.5, 0.25])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of digits")
    parser.add_argument("--epochs", type=int, default=10, help="of digits")
    parser.add_argument("--photos", metavar="DATA", help="photographs with a true attribute")
    parser.add_argument("--limit", type=int, help="at most so many photographs a split")
    parser.add_argument("--backbone", help="of photographs: a folder")
    saved.option(parser)
    given = parser.parse_args()
    if given.photos and not given.backbone:
        parser.error("--photos wants --backbone FOLDER")
    titles = PHOTO_TITLES if given.photos else TITLES
    print(" | ".join(titles))
    lines = photographs(given) if given.photos else digits(given)
    about = "coloured digits, class and colour balanced in the test"
    saved.save(
        given.save,
        seeds=[0] if given.photos else given.seeds,
        selection="val_true_groups" if given.photos else "val_pseudo_groups, by true colours",
        tables={"": saved.table(titles, lines)},
        about="features solved: no seed has a part in them" if given.photos else about,
    )


if __name__ == "__main__":
    main()
