"""`python -m d2cp.backbone.pretrain --out DIR [--steps N] [--seed S] [--threads T]`."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from d2cp.backbone.pretrain.train import Settings, pretrain


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m d2cp.backbone.pretrain", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pretrain(arguments.out, Settings(steps=arguments.steps, seed=arguments.seed))


if __name__ == "__main__":
    main()
