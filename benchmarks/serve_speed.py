"""Images/s of the exported model beside the bare transformers ViT, alternating in one run.

    python benchmarks/serve_speed.py --backbone vit-b16-random --size 224 --batch 8
    python benchmarks/serve_speed.py --backbone embedded --size 28 --batch 128

The bare model is ViTModel with a linear head on CLS. Seconds per image of ours over its own: at
most 1.05 is the goal; below 1 because the last block is computed for CLS alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import ViTConfig, ViTModel

from d2cp.backbone import backbone_from_config, load_backbone
from d2cp.backbone.load import EMBEDDED_FOLDER
from d2cp.config.debias import DebiasConfig
from d2cp.debias.dual_branch import DualBranch
from d2cp.debias.loop import Fitted
from d2cp.debias.parameter_count import ParameterCount
from d2cp.debias.train import Trained
from d2cp.debias.trained_files import Artifact
from d2cp.export.folded import deployed_model


def models(name: str, length: int) -> tuple[nn.Module, Any]:
    """An export with untrained prompts, and the bare network."""
    if name == "vit-b16-random":
        config = ViTConfig(image_size=224, patch_size=16)
        backbone, bare = backbone_from_config(config), ViTModel(config, add_pooling_layer=False)
    else:
        folder = EMBEDDED_FOLDER if name == "embedded" else name
        backbone = load_backbone(name)
        bare = ViTModel.from_pretrained(folder, add_pooling_layer=False)
        config = bare.config
    settings = DebiasConfig(prompt_length=length)
    model = DualBranch.new(backbone, 2, 2, settings, seed=0)
    count = ParameterCount.of(model, backbone.parameter_count)
    trained = Trained(model, settings, 0, Fitted(0, 0, None), count)
    artifact = Artifact(trained, name, ("0", "1"), ("0", "1"))
    return deployed_model(artifact, backbone, config.to_dict()), bare.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="embedded", help="embedded, vit-b16-random, a folder")
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--length", type=int, default=10, help="prompts a layer")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--passes", type=int, default=1, help="passes in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--cpu-time", action="store_true", help="count CPU seconds: for a machine others use too"
    )
    args = parser.parse_args()
    clock = time.process_time if args.cpu_time else time.perf_counter
    torch.set_num_threads(args.threads)
    model, bare = models(args.backbone, args.length)
    head = nn.Linear(bare.config.hidden_size, 2)
    pixels = torch.randn(args.batch, 3, args.size, args.size)

    def ours() -> Tensor:
        return model(pixels).logits

    def plain() -> Tensor:
        return head(bare(pixels).last_hidden_state[:, 0])

    def seconds(work: Callable[[], Tensor]) -> float:
        begin = clock()
        for _ in range(args.passes):
            work()
        return (clock() - begin) / args.passes

    times: dict[str, list[float]] = {"bare": [], "ours": []}
    with torch.inference_mode():
        ours(), plain()
        for _ in range(args.rounds):
            times["bare"].append(seconds(plain))
            times["ours"].append(seconds(ours))
    ratios = sorted(o / b for o, b in zip(times["ours"], times["bare"], strict=True))
    unit = "CPU seconds" if args.cpu_time else "seconds"
    print(f"{args.backbone}, {args.size} px, batch {args.batch}, L={args.length}; by {unit}")
    for name, label in (("bare", "bare ViT"), ("ours", "exported model")):
        print(f"{label:16}{args.batch / statistics.median(times[name]):8.1f} images/s")
    print(
        f"time of ours / bare, median of {args.rounds} rounds: {statistics.median(ratios):.2f} "
        f"(from {ratios[0]:.2f} to {ratios[-1]:.2f})"
    )


if __name__ == "__main__":
    main()
