"""The paper's presets at full size on this machine: a few steps of ViT-B/16 with random weights.

    python benchmarks/full_size.py --preset waterbirds --steps 2
    python benchmarks/full_size.py --preset celeba --steps 1 --batch 16

Checks shapes and memory, not accuracy: images and labels are noise. Prints seconds a step, the
peak memory of the process and the parameter counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import time

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import ViTConfig

from d2cp.backbone import backbone_from_config
from d2cp.config import load_config
from d2cp.data.store import ImageStore
from d2cp.debias.labels import Labels
from d2cp.debias.train import train_d2cp


class Noise(ImageStore):
    """Images that need no file: noise, the same for the same row."""

    def __init__(self, count: int, size: int) -> None:
        self._count, self.size, self.key, self.bad = count, size, "noise", {}

    @property
    def n(self) -> int:
        return self._count

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        make = np.random.default_rng
        shape = (self.size, self.size, 3)
        return np.stack([make(int(i)).integers(256, size=shape, dtype=np.uint8) for i in indices])

    def subset(self, indices: NDArray[np.int64]) -> Noise:
        return Noise(len(indices), self.size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="waterbirds")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--batch", type=int, help="instead of the preset's")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    config = dataclasses.replace(load_config(args.preset).debias, max_steps=args.steps)
    if args.batch:
        config = dataclasses.replace(config, batch_size=args.batch)
    count = 2 * config.batch_size
    bits = np.random.default_rng(0).integers(2, size=(4, count))
    labels = Labels(
        y=bits[0],
        classes=2,
        train=np.arange(count),
        val=np.arange(0),
        a=bits[1],
        y_xrm=bits[2],
        a_xrm=bits[3],
    )
    backbone = backbone_from_config(ViTConfig(image_size=224, patch_size=16))
    begin = time.perf_counter()
    trained = train_d2cp(backbone, Noise(count, config.resize), labels, config, seed=0)
    seconds = (time.perf_counter() - begin) / trained.fitted.steps
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"preset {args.preset}: ViT-B/16, {config.image_size} px, batch {config.batch_size}")
    print(f"{seconds:.1f} s a step, peak memory {peak:.1f} GiB")
    print(trained.parameters)


if __name__ == "__main__":
    main()
