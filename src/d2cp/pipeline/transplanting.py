"""Frozen features of training images whose cue was exchanged: a stage of its own, in a minute."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from d2cp.backbone import load_backbone
from d2cp.core.arrays import Bytes, Ints
from d2cp.core.device import process_state
from d2cp.core.files import write_bytes
from d2cp.core.processes import is_main
from d2cp.core.progress import progress
from d2cp.core.rng import numpy_generator
from d2cp.data.pixels import centre_crop
from d2cp.data.store import ImageStore
from d2cp.debias.transplants import Transplants
from d2cp.disentangle.canvas import Grid, save_png
from d2cp.errors import RunError
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovered import Discovery
from d2cp.scan.exchange import Exchange, exchanged, pairs, why_not
from d2cp.scan.finding import Finding, Scan
from d2cp.scan.transplants import as_bytes
from d2cp.scan.workers import each, sharing

FILE, PICTURE = "transplants.safetensors", "exchanged.png"
MOST = 6_000
"""Images that are shown with the cue exchanged: beyond that time grows and little else."""
TOGETHER = 16
SHOWN = 8


def transplants(context: Context, found: Discovery) -> Transplants | None:
    """None where the configuration does not ask for them, or the groups are not of one finding
    whose cue can be exchanged: then it is said why."""
    if not context.config.debias.transplants:
        _leave_out(context)
        return None
    finding, reason = _exchangeable(context, found)
    if finding is None:
        _leave_out(context, reason)
        return None
    assert found.scan is not None
    table, seed = context.blind, context.config.seed
    train = table.rows("train")
    rows = np.concatenate([train, table.rows("val")])
    rows = np.sort(numpy_generator(seed, "scan/exchange/rows").permutation(rows)[:MOST])
    which = pairs(finding, found.pseudo, rows, train, seed)
    if which is None:
        _leave_out(context, "all training images have one value")
        return None
    inputs = context.inputs("transplants", [finding.rank, MOST])

    def make(folder: Path) -> None:
        assert found.scan is not None
        features = _features(context, found.scan, finding, which, folder)
        arrays = {"rows": which.recipients, "values": which.given}
        tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
        write_bytes(folder / FILE, save({**tensors, **features}))

    return load_transplants(context.stage("transplants", inputs, make, alone=True))


def _leave_out(context: Context, reason: str = "") -> None:
    """Those that an earlier start may have made, for another finding, are gone, too."""
    if reason:
        context.say(f"transplants: left out, {reason}")
    if is_main():
        shutil.rmtree(context.run.path / "transplants", ignore_errors=True)


def _exchangeable(context: Context, found: Discovery) -> tuple[Finding | None, str]:
    ranks, config = found.summary.get("findings", []), context.config.debias
    if config.tier != "features":
        return None, "prompts learn from images as they are"
    if found.scan is None or not ranks or config.pseudo_source != "cbcm" or not config.use_pseudo:
        return None, "the groups are not of a scan's finding"
    if len(ranks) > 1:
        return None, "the groups are of several findings"
    finding = next(f for f in found.scan.findings if f.rank == ranks[0])
    if finding.values != found.values:
        return None, "values of the finding were merged"
    reason = why_not(finding)
    return (None, reason) if reason else (finding, "")


def _features(
    context: Context, scan: Scan, finding: Finding, which: Exchange, folder: Path
) -> dict[str, Tensor]:
    config, seed = context.config, context.config.seed
    device, side = process_state().device, config.debias.image_size
    backbone = load_backbone(config.backbone, config.debias.keep_patches)
    backbone.to(device)
    seen, n = context.images(config.debias.resize), len(which.recipients)
    parts = [slice(start, start + TOGETHER) for start in range(0, n, TOGETHER)]

    def features(images: Tensor) -> Tensor:
        crops = centre_crop(images, side).to(device)
        return backbone.features(backbone.normalise(crops)).cpu()

    with progress(len(parts), "transplants", quiet=context.quiet) as bar, sharing():

        @torch.no_grad()
        def both(part: slice) -> tuple[Tensor, Tensor]:
            made = exchanged(scan, finding, which, seen, part, seed)
            bar.step(len(made[0]))
            return features(made[0]), features(made[1])

        found = each(both, parts)
    _draw(folder / PICTURE, scan, finding, which, seen, seed)
    return {
        "exchanged": torch.cat([one for one, _ in found]),
        "controls": torch.cat([other for _, other in found]),
    }


def _draw(
    path: Path, scan: Scan, finding: Finding, which: Exchange, seen: ImageStore, seed: int
) -> None:
    """The first images of every value, exchanged, and their controls."""
    shown = np.sort(
        np.concatenate(
            [np.flatnonzero(which.given == v)[: SHOWN // 2] for v in np.unique(which.given)[:2]]
        )
    )
    some = Exchange(*(getattr(which, name)[shown] for name in which.__dataclass_fields__))
    made, control = exchanged(scan, finding, some, seen, slice(None), seed)
    rows: list[tuple[str, Bytes]] = [
        ("the image", seen[some.recipients]),
        ("the donor", seen[some.donors]),
        ("the image with the donor's cue", as_bytes(made)),
        ("its control", as_bytes(control)),
    ]
    grid = Grid(
        title="What training also sees",
        note=f"{finding.name}: the cue of an image with another value is put in, or laid over.",
        columns=[f"now “{finding.value_names[value]}”" for value in some.given],
        rows=[(name, list(images)) for name, images in rows],
    )
    save_png(grid.draw(), path)


def load_transplants(folder: Path) -> Transplants:
    try:
        found = load_file(folder / FILE)
        return Transplants(
            rows=_numbers(found["rows"]),
            values=_numbers(found["values"]),
            exchanged=found["exchanged"],
            controls=found["controls"],
        )
    except (SafetensorError, OSError, KeyError) as error:
        raise RunError(
            f"{folder / FILE} cannot be read: {error}",
            remedy=f"delete {folder} and run again; other stages are kept",
        ) from error


def _numbers(values: Tensor) -> Ints:
    found: Ints = values.numpy().astype(np.int64)
    return found
