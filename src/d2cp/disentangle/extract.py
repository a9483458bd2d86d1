"""Concepts of every image: the scalars S [N,K] and the tokens E [N,K,D] that mining reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from d2cp.core.parts import in_parts, working
from d2cp.core.processes import in_shares
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

    def of_images(images: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
        s = model.scalars(images, model.guided_scalars(images, where.numpy()))
        return torch.cat([s[..., None], model.concept_tokens(s)], dim=2)

    def concepts(part: slice) -> torch.Tensor:
        images = signed_view(store, rows[part]).to(model.latent_std.device)
        return in_parts(of_images, [images, torch.from_numpy(rows[part])])

    shape = (model.config.concepts, 1 + model.config.tokens.dim)
    with working(batch * 3 * model.config.size**2):
        whole = in_shares(concepts, len(rows), batch, shape).float().cpu().numpy()
    return Concepts(whole[..., 0].copy(), whole[..., 1:].copy())
