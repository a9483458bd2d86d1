"""Logits of table rows, in batches; with several processes each does its share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from d2cp.backbone import Backbone
from d2cp.core.arrays import Rows
from d2cp.core.parts import working
from d2cp.core.processes import in_shares
from d2cp.data.pixels import centre_view
from d2cp.data.store import ImageStore
from d2cp.debias.adapters import AdapterClassifier
from d2cp.debias.dual_branch import PromptClassifier

Classifier = PromptClassifier | AdapterClassifier  # one branch, as it is deployed


def image_logits(classifier: Classifier, backbone: Backbone, images: Tensor) -> Tensor:
    """Logits of images in [0, 1], whatever the branch is made of."""
    if isinstance(classifier, PromptClassifier):
        prompted: Tensor = classifier(backbone, images)
        return prompted
    adapted: Tensor = classifier(backbone.features(backbone.normalise(images)))
    return adapted


def predict_logits(
    classifier: Classifier,
    backbone: Backbone,
    store: ImageStore,
    rows: Rows,
    *,
    image_size: int,
    batch_size: int = 256,
) -> NDArray[np.float32]:
    """Logits [n, classes] of the centre crops of `rows`."""
    head = classifier.head

    def logits(images: Tensor) -> Tensor:
        return image_logits(classifier, backbone, images.to(head.weight.device))

    whole = _over(logits, store, rows, image_size, batch_size, head.out_features)
    return np.asarray(whole.cpu().numpy(), dtype=np.float32)


def predict_features(
    branch: PromptClassifier,
    backbone: Backbone,
    store: ImageStore,
    rows: Rows,
    *,
    image_size: int,
    batch_size: int = 256,
) -> Tensor:
    """h [n, D] of the centre crops of `rows`: what the branch's head reads."""
    head = branch.head

    def features(images: Tensor) -> Tensor:
        return branch.features(backbone, images.to(head.weight.device))

    return _over(features, store, rows, image_size, batch_size, head.in_features)


def _over(
    function: Callable[[Tensor], Tensor],
    store: ImageStore,
    rows: Rows,
    image_size: int,
    batch_size: int,
    width: int,
) -> Tensor:
    def part_of(part: slice) -> Tensor:
        return function(centre_view(store[rows[part]], image_size)).float()

    with working(batch_size * 3 * image_size**2):
        return in_shares(part_of, len(rows), batch_size, (width,))
