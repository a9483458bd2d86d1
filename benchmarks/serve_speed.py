"""Images/s of the exported model beside the bare transformers ViT, alternating in one run.

    python benchmarks/serve_speed.py --backbone vit-b16-random --size 224 --batch 8
    python benchmarks/serve_speed.py --backbone embedded --size 28 --batch 1 32 --onnx

The bare model is ViTModel with a linear head on CLS. Seconds per image of ours over its own: below
1 because the last block is computed for CLS alone. `--onnx`: the ONNX file in onnxruntime, too.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import ViTConfig, ViTModel

import saved
from d2cp.backbone import backbone_from_config, load_backbone
from d2cp.backbone.load import EMBEDDED_FOLDER
from d2cp.config.debias import DebiasConfig
from d2cp.debias.dual_branch import DualBranch
from d2cp.debias.loop import Fitted
from d2cp.debias.parameter_count import ParameterCount
from d2cp.debias.train import Trained
from d2cp.debias.trained_files import Artifact
from d2cp.export.folded import deployed_model


def models(name: str, length: int, size: int) -> tuple[nn.Module, Any]:
    """An export with untrained prompts, and the bare network."""
    if name == "vit-b16-random":
        config = ViTConfig(image_size=224, patch_size=16)
        backbone, bare = backbone_from_config(config), ViTModel(config, add_pooling_layer=False)
    else:
        folder = EMBEDDED_FOLDER if name == "embedded" else name
        backbone = load_backbone(name)
        bare = ViTModel.from_pretrained(folder, add_pooling_layer=False)
        config = bare.config
    settings = DebiasConfig(prompt_length=length, image_size=size, resize=size)
    model = DualBranch.new(backbone, 2, 2, settings, seed=0)
    count = ParameterCount.of(model, backbone.parameter_count)
    trained = Trained(model, settings, 0, Fitted(0, 0, None), count)
    artifact = Artifact(trained, name, ("0", "1"), ("0", "1"))
    return deployed_model(artifact, backbone, config.to_dict()), bare.eval()


def onnx_pass(model: Any, threads: int) -> Callable[[Tensor], Any]:
    """The exported ONNX file in onnxruntime, with as many threads."""
    import onnxruntime

    from d2cp.export.onnx_file import export_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx(model, path)
        session = onnxruntime.InferenceSession(
            path.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
    return lambda pixels: session.run(None, {"pixel_values": pixels.numpy()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backbone", default="embedded", help="embedded, vit-b16-random, a folder")
    parser.add_argument("--size", type=int, default=28)
    parser.add_argument("--batch", type=int, nargs="+", default=[128])
    parser.add_argument("--length", type=int, default=10, help="prompts a layer")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--passes", type=int, default=1, help="passes in each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--onnx", action="store_true", help="the ONNX file beside them")
    parser.add_argument(
        "--cpu-time", action="store_true", help="count CPU seconds: for a machine others use too"
    )
    saved.option(parser)
    args = parser.parse_args()
    clock = time.process_time if args.cpu_time else time.perf_counter
    torch.set_num_threads(args.threads)
    model, bare = models(args.backbone, args.length, args.size)
    head = nn.Linear(bare.config.hidden_size, 2)
    ways: dict[str, Callable[[Tensor], Any]] = {
        "bare ViT": lambda pixels: head(bare(pixels).last_hidden_state[:, 0]),
        "exported model": lambda pixels: model(pixels).logits,
    }
    if args.onnx:
        ways["ONNX file"] = onnx_pass(model, args.threads)
    unit = "CPU seconds" if args.cpu_time else "seconds"
    lines = []
    for batch in args.batch:
        pixels = torch.randn(batch, 3, args.size, args.size)
        times: dict[str, list[float]] = {name: [] for name in ways}
        with torch.inference_mode():
            for way in ways.values():
                way(pixels)
            for _ in range(args.rounds):
                for name, way in ways.items():
                    began = clock()
                    for _ in range(args.passes):
                        way(pixels)
                    times[name].append((clock() - began) / args.passes)
        print(f"{args.backbone}, {args.size} px, batch {batch}, L={args.length}; by {unit}")
        for name, found in times.items():
            over = sorted(a / b for a, b in zip(found, times["bare ViT"], strict=True))
            rate = f"{batch / statistics.median(found):.1f}"
            spread = f"{statistics.median(over):.2f} (from {over[0]:.2f} to {over[-1]:.2f})"
            print(f"{name:16}{rate:>8} images/s; time over the bare ViT's {spread}")
            lines.append((str(batch), name, rate, spread))
    header = ("batch", "", "images/s", f"{unit} over the bare ViT's")
    saved.save(
        args.save,
        seeds=[0],
        selection="",
        tables={"": saved.table(header, lines)},
        about=f"{args.backbone}, {args.size} px, L={args.length}, {args.threads} thread(s)",
    )


if __name__ == "__main__":
    main()
