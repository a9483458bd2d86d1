"""Frozen features of training images whose cues were exchanged: a stage of its own, in a minute."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
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
    """None where the configuration does not ask for them, or no finding that makes the groups has
    a cue that can be exchanged: then it is said why."""
    if not context.config.debias.transplants:
        _leave_out(context)
        return None
    findings, reason = _used(context, found)
    reasons = [why_not(finding) for finding in findings]
    if not findings or all(reasons):
        _leave_out(context, reason or _joined(findings, reasons))
        return None
    assert found.scan is not None
    table, seed = context.blind, context.config.seed
    train = table.rows("train")
    rows = np.concatenate([train, table.rows("val")])
    rows = np.sort(numpy_generator(seed, "scan/exchange/rows").permutation(rows)[:MOST])
    cells, fixed = np.array(found.summary["cells"]), [bool(reason) for reason in reasons]
    which = pairs(findings, cells, found.pseudo, rows, train, seed, fixed)
    if which is None:
        _leave_out(context, "all training images have one value")
        return None
    if any(fixed):
        context.say(f"transplants: {_joined(findings, reasons)}")
    inputs = context.inputs("transplants", [*(finding.rank for finding in findings), MOST])

    def make(folder: Path) -> None:
        assert found.scan is not None
        seen = _Seen(context, found.scan, findings, found.summary["value_names"])
        arrays = {"rows": which.recipients, "values": which.given}
        tensors = {name: torch.from_numpy(values) for name, values in arrays.items()}
        write_bytes(folder / FILE, save({**tensors, **seen.features(which)}))
        save_png(seen.grid(which).draw(), folder / PICTURE)

    return load_transplants(context.stage("transplants", inputs, make, alone=True))


def _leave_out(context: Context, reason: str = "") -> None:
    """Those that an earlier start may have made, for another finding, are gone, too."""
    if reason:
        context.say(f"transplants: left out, {reason}")
    if is_main():
        shutil.rmtree(context.run.path / "transplants", ignore_errors=True)


def _used(context: Context, found: Discovery) -> tuple[list[Finding], str]:
    """The findings that make the groups; none, and why, where these are made in another way."""
    ranks, config = found.summary.get("findings", []), context.config.debias
    if config.tier != "features":
        return [], "prompts learn from images as they are"
    if found.scan is None or not ranks or config.pseudo_source != "cbcm" or not config.use_pseudo:
        return [], "the groups are not of a scan's findings"
    if "cells" not in found.summary:
        return [], "the groups were made by an earlier version"
    known = {f.rank: f for f in found.scan.findings}
    return [known[rank] for rank in ranks], ""


def _joined(findings: Sequence[Finding], reasons: Sequence[str]) -> str:
    """Which findings keep their cue, and why."""
    if len(findings) == 1:
        return reasons[0]
    said = [
        f"finding {finding.rank} keeps its cue, {reason}"
        for finding, reason in zip(findings, reasons, strict=True)
        if reason
    ]
    return "; ".join(said)


class _Seen:
    """What a run's backbone and a person see of images whose cues are exchanged."""

    def __init__(
        self, context: Context, scan: Scan, findings: Sequence[Finding], names: Sequence[str]
    ) -> None:
        self._context, self._scan, self._findings, self._names = context, scan, findings, names
        self._images = context.images(context.config.debias.resize)

    def _exchanged(self, which: Exchange) -> tuple[Tensor, Tensor]:
        seed = self._context.config.seed
        return exchanged(self._scan, self._findings, which, self._images, seed)

    def features(self, which: Exchange) -> dict[str, Tensor]:
        config = self._context.config
        device, side = process_state().device, config.debias.image_size
        backbone = load_backbone(config.backbone, config.debias.keep_patches)
        backbone.to(device)
        n = len(which.recipients)
        parts = [slice(start, start + TOGETHER) for start in range(0, n, TOGETHER)]

        def features(images: Tensor) -> Tensor:
            crops = centre_crop(images, side).to(device)
            return backbone.features(backbone.normalise(crops)).cpu()

        with progress(len(parts), "transplants", quiet=self._context.quiet) as bar, sharing():

            @torch.no_grad()
            def both(part: slice) -> tuple[Tensor, Tensor]:
                made, control = self._exchanged(which.part(part))
                bar.step(len(made))
                return features(made), features(control)

            found = each(both, parts)
        return {
            "exchanged": torch.cat([one for one, _ in found]),
            "controls": torch.cat([other for _, other in found]),
        }

    def grid(self, which: Exchange) -> Grid:
        """The first images of every value, exchanged, and their controls."""
        values = np.unique(which.given)[: SHOWN // 2]
        each_value = SHOWN // len(values)
        shown = [np.flatnonzero(which.given == v)[:each_value] for v in values]
        some = which.part(np.sort(np.concatenate(shown)))
        made, control = self._exchanged(some)
        donors = [
            (f"a donor: {finding.name}" if len(self._findings) > 1 else "the donor", k)
            for k, finding in enumerate(self._findings)
            if (some.before[:, k] != some.after[:, k]).any()
        ]
        rows: list[tuple[str, Bytes]] = [
            ("the image", self._images[some.recipients]),
            *((name, self._images[some.donors[:, k]]) for name, k in donors),
            ("the image with the donor's cue", as_bytes(made)),
            ("its control", as_bytes(control)),
        ]
        names = " and ".join(finding.name for finding in self._findings)
        return Grid(
            title="What training also sees",
            note=f"{names}: the cue of an image with another value is put in, or laid over.",
            columns=[f"now “{self._names[value]}”" for value in some.given],
            rows=[(name, list(images)) for name, images in rows],
        )


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
