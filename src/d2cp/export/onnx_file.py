"""ONNX with a dynamic batch, checked against torch in onnxruntime before it is kept."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from d2cp.core.files import write_bytes
from d2cp.errors import ConfigError, RunError
from d2cp.export.hugging_face import D2CPForImageClassification

TOLERANCE = 1e-4
NEEDED = ("onnx", "onnxscript", "onnxruntime")


class _Tuple(nn.Module):
    """Plain outputs: ONNX has no named fields of a dataclass."""

    def __init__(self, model: D2CPForImageClassification) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: Tensor) -> tuple[Tensor, ...]:
        out = self.model(pixel_values)
        return (out.logits,) if out.shortcut_logits is None else (out.logits, out.shortcut_logits)


def require_onnx() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"ONNX export needs {', '.join(missing)}",
            expected="the extra `onnx`",
            remedy="pip install 'd2cp[onnx]'",
        )


def export_onnx(model: D2CPForImageClassification, path: Path) -> float:
    """Write `path` and return the largest difference of logits between ONNX and torch."""
    require_onnx()
    size = model.config.image_size
    plain = _Tuple(model).eval()
    names = ["logits"] if model.config.shortcut_labels is None else ["logits", "shortcut_logits"]
    generator = torch.Generator().manual_seed(0)
    with _silence(), torch.no_grad():
        # strict: the tracer that keeps len(tensor) symbolic, so that the batch stays dynamic
        graph = torch.export.export(
            plain,
            (torch.randn(2, 3, size, size, generator=generator),),
            dynamic_shapes={"pixel_values": {0: torch.export.Dim("batch")}},
            strict=True,
        )
        program: Any = torch.onnx.export(
            graph, input_names=["pixel_values"], output_names=names, dynamo=True, verbose=False
        )
    data = program.model_proto.SerializeToString()
    difference = max(
        _difference(plain, data, torch.randn(rows, 3, size, size, generator=generator))
        for rows in (1, 5)
    )
    if not difference <= TOLERANCE:
        raise RunError(
            f"the ONNX model differs from torch by {difference:.2g}",
            expected=f"at most {TOLERANCE:g}",
            remedy="use another version of onnxruntime, or the safetensors model",
        )
    write_bytes(path, data)
    return difference


@contextmanager
def _silence() -> Iterator[None]:
    """The exporter warns of what it does not need here (torchvision's operators, for one)."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _difference(model: nn.Module, data: bytes, pixels: Tensor) -> float:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found = session.run(None, {"pixel_values": pixels.numpy()})
    with torch.no_grad():
        expected = model(pixels)
    pairs = zip(found, expected, strict=True)
    return max(float(np.abs(one - other.numpy()).max()) for one, other in pairs)
