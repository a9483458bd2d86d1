"""The stages of `d2cp run`, in order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from d2cp.backbone import load_backbone
from d2cp.pipeline.ahead import start_ahead
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovery import discover
from d2cp.pipeline.environment_bits import environments
from d2cp.pipeline.scoring import evaluate
from d2cp.pipeline.stage_two import control_labels, labels_of, train
from d2cp.pipeline.transplanting import transplants


def run_stages(
    context: Context,
    *,
    corrections: Path | None = None,
    findings: Sequence[int] = (),
    control: bool = True,
) -> None:
    """Scan and discover → environments → control, transplants, dual-branch model → evaluate."""
    side = context.config.debias.image_size
    keep = context.config.debias.keep_patches
    load_backbone(context.config.backbone, keep).grid(side, side)  # told now, not after stage 1
    with closing(start_ahead(context, control=control)) as ahead:
        context.take = ahead.take
        found = discover(context, corrections, findings)
        bits = environments(context, found)
        labels = labels_of(context, found, bits)
        models = {"erm": train(context, "erm", control_labels(context))} if control else {}
        ahead.clear()
    made = transplants(context, found)
    models["debias"] = train(context, "debias", labels, control=models.get("erm"), transplants=made)
    evaluate(context, found, models)
