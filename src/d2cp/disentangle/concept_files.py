"""The concept model and its concepts on disk: safetensors for numbers, JSON for the rest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as pack_arrays
from safetensors.torch import load_file, save

from d2cp.config.disentangle import DisentangleConfig
from d2cp.config.strict import build
from d2cp.core.files import read_json, write_bytes, write_json
from d2cp.disentangle.autoencoder import VQSpace
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.extract import Concepts
from d2cp.disentangle.given_scalars import GivenScalars
from d2cp.disentangle.guide import Guide
from d2cp.disentangle.latent_space import PixelSpace, Space
from d2cp.errors import RunError

MODEL, SETTINGS, CONCEPTS = "model.safetensors", "model.json", "concepts.safetensors"


def save_model(model: ConceptModel, folder: Path) -> None:
    """Write model.safetensors and model.json."""
    tensors = {name: value.cpu().contiguous() for name, value in model.state_dict().items()}
    guide = model.guide
    write_bytes(folder / MODEL, save(tensors))
    shape = None if guide is None else {"classes": guide.classes, "images": len(guide.rows)}
    given = None if model.given is None else list(model.given.values.shape)
    plain = {"config": dataclasses.asdict(model.config), "guide": shape, "given": given}
    write_json(folder / SETTINGS, plain)


def load_model(folder: Path) -> ConceptModel:
    """The model that `save_model` wrote, ready for extraction and pictures."""
    settings = read_json(folder / SETTINGS)
    config = build(DisentangleConfig, settings["config"])
    space: Space = PixelSpace(config.size, config.unshuffle)
    if config.space == "vq":
        space = VQSpace(config)
    guide = None
    if shape := settings["guide"]:
        guide = Guide.sized(config, shape["classes"], shape["images"])
    given = GivenScalars(*settings["given"]) if settings.get("given") else None
    model = ConceptModel(config, space, guide, 0, given)
    try:
        model.load_state_dict(load_file(folder / MODEL))
    except (SafetensorError, OSError, RuntimeError) as error:
        raise RunError(
            f"{folder / MODEL} cannot be read: {error}",
            expected="the weights that belong to model.json",
            remedy=f"delete {folder} and run again; other stages are kept",
        ) from error
    return model.requires_grad_(False).eval()


def save_concepts(concepts: Concepts, rows: NDArray[np.int64], folder: Path) -> None:
    """Scalars and tokens with the table rows they belong to."""
    arrays = {"scalars": concepts.scalars, "tokens": concepts.tokens, "rows": rows}
    write_bytes(folder / CONCEPTS, pack_arrays(arrays))


def load_concepts(folder: Path) -> tuple[Concepts, NDArray[np.int64]]:
    try:
        arrays = load_arrays(folder / CONCEPTS)
        scalars, tokens, rows = arrays["scalars"], arrays["tokens"], arrays["rows"]
        if tokens.ndim != 3 or scalars.shape != tokens.shape[:2] or rows.shape != scalars.shape[:1]:
            raise ValueError(f"shapes {scalars.shape}, {tokens.shape}, {rows.shape}")
        return Concepts(scalars, tokens), rows
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise RunError(
            f"{folder / CONCEPTS} cannot be read: {error}",
            remedy=f"delete {folder} and run again; other stages are kept",
        ) from error
