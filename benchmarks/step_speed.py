"""Images/s of the dual-branch step beside two plain VPT passes over transformers' own ViT.

Both in one run, alternating, so that a busy machine slows both:

    python benchmarks/step_speed.py --backbone vit-b16-random --size 224 --batch 8
    python benchmarks/step_speed.py --backbone embedded --size 28 --batch 128
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import ViTConfig, ViTModel

from d2cp.backbone import Backbone, backbone_from_config, load_backbone
from d2cp.backbone.load import EMBEDDED_FOLDER
from d2cp.config.debias import DebiasConfig
from d2cp.core.memory import keep
from d2cp.debias.branch_logits import prompt_logits
from d2cp.debias.dual_branch import DualBranch
from d2cp.debias.loop import Batch

VIT = {"image_size": 224, "patch_size": 16}
RANDOM: dict[str, dict[str, int]] = {
    "vit-b16-random": VIT,
    "vit-s16-random": {
        **VIT,
        "hidden_size": 384,
        "intermediate_size": 1536,
        "num_attention_heads": 6,
    },
}


def models(name: str, size: int, attention: str = "sdpa") -> tuple[Backbone, Any]:
    """The same network through the adapter and in the library's own form, with the attention that
    the library takes for saved weights, or with `eager`, which keeps the attention maps."""
    if name in RANDOM:
        config = ViTConfig(**RANDOM[name])
        backbone, plain = backbone_from_config(config), ViTModel(config, add_pooling_layer=False)
    else:
        folder = EMBEDDED_FOLDER if name == "embedded" else name
        backbone = load_backbone(name)
        plain = ViTModel.from_pretrained(folder, add_pooling_layer=False)
    plain.set_attn_implementation(attention)
    return backbone, plain


def plain_vpt(model: Any, prompts: Tensor, pixels: Tensor) -> Tensor:
    """Concatenate the prompts before every layer, drop them after it."""
    length = prompts.shape[1]
    x = model.embeddings(pixels)
    for layer, own in zip(model.layers, prompts, strict=True):
        x = layer(torch.cat([x[:, :1], own.expand(len(x), -1, -1), x[:, 1:]], dim=1))
        x = torch.cat([x[:, :1], x[:, 1 + length :]], dim=1)
    return model.layernorm(x)[:, 0]


def dual_step(backbone: Backbone, config: DebiasConfig, images: Tensor) -> Callable[[], None]:
    model = DualBranch.new(backbone, 2, 2, config, seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    labels = torch.arange(len(images)) % 2
    config = replace(config, prompt_dropout=0.0, batch_size=len(images))
    branches = prompt_logits(model, backbone, config, seed=0)

    def step() -> None:
        optimizer.zero_grad()
        for piece in branches(Batch(images, labels, 0, 0)):
            losses = [cross_entropy(logits, labels) for logits in piece().values()]
            torch.stack(losses).sum().backward()
        optimizer.step()

    return step


def plain_step(
    vit: Any, backbone: Backbone, config: DebiasConfig, images: Tensor, branches: int = 2
) -> Callable[[], None]:
    """One pass a branch. No projection: what is compared is the way prompts are run."""
    vit.eval().requires_grad_(False)
    shape = (branches, backbone.depth, config.prompt_length, backbone.width)
    prompts = nn.Parameter(0.06 * torch.randn(shape))
    heads = nn.ModuleList([nn.Linear(backbone.width, 2) for _ in range(branches)])
    optimizer = torch.optim.SGD([prompts, *heads.parameters()], lr=1e-3, momentum=0.9)
    labels = torch.arange(len(images)) % 2

    def step() -> None:
        optimizer.zero_grad()
        for branch, head in enumerate(heads):
            features = plain_vpt(vit, prompts[branch], backbone.normalise(images))
            cross_entropy(head(features), labels).backward()
        optimizer.step()

    return step


def seconds(work: Callable[[], None], times: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(times):
        work()
    return (clock() - begin) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--backbone", default="embedded", help=f"embedded, {', '.join(RANDOM)}, a folder"
    )
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--length", type=int, default=10, help="prompts a layer")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=1, help="steps in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--cpu-time", action="store_true", help="count CPU seconds: for a machine others use too"
    )
    args = parser.parse_args()
    clock = time.process_time if args.cpu_time else time.perf_counter
    keep()  # as the command does, for either way
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    backbone, vit = models(args.backbone, args.size)
    config = DebiasConfig(prompt_length=args.length)
    images = torch.rand(args.batch, 3, args.size, args.size)
    ours, plain = dual_step(backbone, config, images), plain_step(vit, backbone, config, images)
    ours(), plain()
    times: dict[str, list[float]] = {"dual": [], "plain": []}
    for _ in range(args.rounds):
        times["plain"].append(seconds(plain, args.steps, clock))
        times["dual"].append(seconds(ours, args.steps, clock))
    rate = {name: args.batch / statistics.median(found) for name, found in times.items()}
    ratios = sorted(p / d for p, d in zip(times["plain"], times["dual"], strict=True))
    unit = "CPU seconds" if args.cpu_time else "seconds"
    print(f"{args.backbone}, {args.size} px, batch {args.batch}, L={args.length}; by {unit}")
    print(f"two plain VPT passes  {rate['plain']:8.1f} images/s")
    print(f"dual-branch step      {rate['dual']:8.1f} images/s")
    print(
        f"ratio, median of {args.rounds} rounds: {statistics.median(ratios):.2f} "
        f"(from {ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


if __name__ == "__main__":
    main()
