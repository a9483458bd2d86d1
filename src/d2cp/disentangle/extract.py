"""Concepts of every image: the scalars S [N,K] and the tokens E [N,K,D] that mining reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from d2cp.data.pixels import Stored, signed_view
from d2cp.disentangle.concept_model import ConceptModel


@dataclass(frozen=True)
class Concepts:
    """Row i belongs to the i-th of the rows asked for."""

    scalars: NDArray[np.float32]
    tokens: NDArray[np.float32]


@torch.no_grad()
def extract(
    model: ConceptModel, store: Stored, rows: NDArray[np.int64], batch: int = 256
) -> Concepts:
    """Scalars and tokens in evaluation mode, with the averaged weights the model ended with."""
    model.eval()
    scalars, tokens = [], []
    for i in range(0, len(rows), batch):
        some = rows[i : i + batch]
        images = signed_view(store, some).to(model.latent_std.device)
        s = model.scalars(images, model.guided_scalars(images, some))
        scalars.append(s.float().cpu().numpy())
        tokens.append(model.concept_tokens(s).float().contiguous().cpu().numpy())
    k, d = model.config.concepts, model.config.tokens.dim
    if not scalars:
        return Concepts(np.zeros((0, k), np.float32), np.zeros((0, k, d), np.float32))
    return Concepts(np.concatenate(scalars), np.concatenate(tokens))
