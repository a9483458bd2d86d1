"""Logits of table rows, in batches; with several processes each does its share."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from d2cp.backbone import Backbone
from d2cp.core.arrays import Rows
from d2cp.core.processes import global_sum, process_count, process_rank
from d2cp.data.pixels import centre_view
from d2cp.data.store import ImageStore
from d2cp.debias.dual_branch import PromptClassifier


def predict_logits(
    classifier: PromptClassifier,
    backbone: Backbone,
    store: ImageStore,
    rows: Rows,
    *,
    image_size: int,
    batch_size: int = 256,
) -> NDArray[np.float32]:
    """Logits [n, classes] of the centre crops of `rows`."""
    device = classifier.prompts.device
    logits = torch.zeros(len(rows), classifier.head.out_features, device=device)
    rank, world = process_rank(), process_count()
    with torch.no_grad():
        for start in range(rank * batch_size, len(rows), world * batch_size):
            part = slice(start, start + batch_size)
            images = centre_view(store[rows[part]], image_size).to(device)
            logits[part] = classifier(backbone, images).float()
    return np.asarray(global_sum(logits).cpu().numpy(), dtype=np.float32)
