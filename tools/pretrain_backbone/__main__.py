"""`python -m tools.pretrain_backbone --out DIR [--threads T] [--from DIR] [--steps N N]`.

DIR/shape gets the weights of the first phase, DIR the finished ones; `--from` starts the second
phase from a folder of the first.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from tools.pretrain_backbone.glyphs import build_bank
from tools.pretrain_backbone.train import COLOUR, SHAPE, pretrain_colour, pretrain_shape


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.pretrain_backbone", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--from", type=Path, dest="start", help="weights of the first phase")
    parser.add_argument(
        "--steps", type=int, nargs=2, metavar="N", default=(SHAPE.steps, COLOUR.steps)
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    bank = build_bank()
    shape, colour = (
        replace(phase, steps=steps, seed=arguments.seed)
        for phase, steps in zip((SHAPE, COLOUR), arguments.steps, strict=True)
    )
    start = arguments.start
    if start is None:
        start = arguments.out / "shape"
        pretrain_shape(start, bank, shape)
    pretrain_colour(start, arguments.out, bank, colour)


if __name__ == "__main__":
    main()
