"""`d2cp probe`: what can be read linearly from a frozen backbone."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer


def probe(
    backbone: Annotated[
        str, typer.Option(help="`embedded`, a folder, or a name on the Hugging Face hub.")
    ] = "embedded",
    train: Annotated[
        int, typer.Option(min=100, max=60_000, help="MNIST training images for the probes.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Draws the training images and the colours.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Linear probes of a frozen backbone on MNIST: ten digits, two colours, ten colours."""
    figures = measure(backbone, train, seed)
    if as_json:
        typer.echo(json.dumps(figures, indent=2))
    else:
        typer.echo("\n".join(lines(figures)))


def lines(figures: dict[str, Any]) -> list[str]:
    """The figures as aligned text."""
    texts = {
        "backbone": f"{figures['backbone']} ({figures['family']}, {figures['image_size']} pixels)",
        "ten digits": f"{figures['digit']:.2%}",
        "red or green": f"{figures['red_green']:.2%}",
        "ten colours": f"{figures['ten_colours']:.2%}",
        "apart": f"{figures['colour_apart']:.1f} red and green, "
        f"{figures['shape_apart']:.1f} 0-4 and 5-9 (mean features)",
        "images": f"{figures['train']:,} to train the probe, {figures['test']:,} of the test split",
        "parameters": f"{figures['parameters']:,} ({figures['megabytes']:.1f} MB as float32)",
        "seconds": f"{figures['seconds']:.0f}",
        "machine": figures["machine"],
    }
    return [f"{name:<13} {text}" for name, text in texts.items()]


def measure(name: str, train: int, seed: int) -> dict[str, Any]:
    """The figures of one backbone."""
    from d2cp.backbone import load_backbone
    from d2cp.backbone.linear_probe import probe_mnist
    from d2cp.core.machine import machine_class
    from d2cp.data.mnist import load_mnist

    loaded = load_backbone(name)
    began = time.monotonic()
    probes = probe_mnist(loaded, load_mnist(), train, seed, quiet=False)
    return {
        "backbone": loaded.name,
        "family": loaded.family,
        "image_size": loaded.image_size,
        **asdict(probes),
        "parameters": loaded.parameter_count,
        "megabytes": loaded.parameter_count * 4 / 1e6,
        "seconds": time.monotonic() - began,
        "machine": machine_class(),
    }
