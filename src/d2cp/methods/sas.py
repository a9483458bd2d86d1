"""SAS (ICLR 25), spurious attribute shielding: the shortcut's own images as pseudo-categories.

Each class c gets a pseudo-category: images of the spurious attribute that goes with c. Loss: cross-
entropy over the classes + lambda x cross-entropy between c and its own pseudo-category.

Fidelity: loss as published. Adapted: the original asks a language model and a text-to-image model
for attribute images; here they are small crops of the training images whose mined concept is most
extreme for the value that prevails in the class. lambda 1 is ours; on prompts.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, interpolate

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.task import Batch, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.compare.train_classifier import train_classifier
from d2cp.core.arrays import Rows
from d2cp.core.rng import uniforms

EXTREME = 64  # most extreme images of each value
CROP = (0.3, 0.5)  # side of a crop, as a share of the image's
CROPS = 1 / 4  # crops in a step, as a share of its images


def shielding_loss(logits: Tensor, target: Tensor, classes: int) -> Tensor:
    """Cross-entropy between each class and its own pseudo-category: logits [n, 2C], target in
    0..2C-1, softmax over {c, C + c} with c = target mod C."""
    own = target % classes
    pair = torch.stack(
        [logits.gather(1, own[:, None])[:, 0], logits.gather(1, own[:, None] + classes)[:, 0]], 1
    )
    return cross_entropy(pair, target // classes)


def prevailing(y: Rows, a: Rows, classes: int, values: int) -> Rows:
    """For each class, the attribute value that is most over-represented in it."""
    counts = np.bincount(values * y + a, minlength=classes * values)
    table = counts.reshape(classes, values) + 1e-9
    lift = (table / table.sum(1, keepdims=True)) / (table.sum(0, keepdims=True) / table.sum())
    best: Rows = lift.argmax(1)
    return best


def extreme_rows(a: Rows, score: np.ndarray[tuple[int], np.dtype[np.float64]], value: int) -> Rows:
    """Positions of the samples of a value whose score lies furthest from the others'."""
    members = np.flatnonzero(a == value)
    others = np.flatnonzero(a != value)
    centre = score[others].mean() if len(others) else score.mean()
    return members[np.argsort(-np.abs(score[members] - centre), kind="stable")[:EXTREME]]


def random_crops(images: Tensor, draws: Tensor) -> Tensor:
    """A square crop of each image, enlarged to its size; `draws` [n, 3] in [0, 1): side, x, y."""
    side = images.shape[-1]
    pieces = []
    for image, (size, x, y) in zip(images, draws.tolist(), strict=True):
        width = max(1, round(side * (CROP[0] + (CROP[1] - CROP[0]) * size)))
        left, top = int(x * (side - width + 1)), int(y * (side - width + 1))
        piece = image[:, top : top + width, left : left + width]
        pieces.append(interpolate(piece[None], size=(side, side), mode="bilinear")[0])
    return torch.stack(pieces)


class SasPredictor:
    def __init__(self, task: Task, model: Classifier) -> None:
        self.model, self._space, self._classes = model, task.space, task.classes
        self.trainable = trainable(model)

    def logits(self, rows: Rows) -> Tensor:
        return self._space.over(self.model, rows)[:, : self._classes]


class Sas:
    spec = Spec(
        name="sas",
        title="SAS",
        venue="ICLR 25",
        fidelity="loss as published; crops of the mined concept's extremes as attribute images",
        needs=frozenset({"prompts", "images", "pseudo"}),
        params={"weight": Param(default=1.0, choices=(0.3, 1.0, 3.0))},
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        self.spec.require_tier(task.space.tier)
        mined, classes = task.pseudo, task.classes
        a, score = mined.attribute[task.train], mined.score[task.train]
        values = prevailing(task.y_train, a, classes, mined.values)
        pools = [extreme_rows(a, score, int(value)) for value in values]
        weight = float(params["weight"])
        crops = max(classes, round(CROPS * min(task.config.batch_size, len(task.train))))
        model = task.classifier(2 * classes)

        def attribute_images(step: int) -> tuple[Tensor, Tensor]:
            slot = np.arange(crops, dtype=np.int64)
            draw = uniforms(task.seed, "sas/crops", step, slot, 4)
            of_class = slot % classes
            rows = np.array(
                [
                    task.train[pools[c][int(u * len(pools[c]))]]
                    for c, u in zip(of_class, draw[:, 3], strict=True)
                ]
            )
            images = random_crops(task.space.read_plain(rows), torch.from_numpy(draw[:, :3]))
            return images, torch.from_numpy(of_class + classes)

        def loss(net: Classifier, batch: Batch, y: Tensor) -> Tensor:
            images, pseudo = (t.to(y.device) for t in attribute_images(batch.step))
            logits = net(torch.cat([batch.images, images]), batch.step)
            plain = cross_entropy(logits[: len(y), :classes], y)
            return plain + weight * shielding_loss(logits, torch.cat([y, pseudo]), classes)

        predictor = SasPredictor(task, model)
        size = min(task.config.batch_size, len(task.train))
        train_classifier(
            task,
            loss,
            stage="sas",
            model=model,
            select=predictor.logits,
            cost=(size + crops) / size,
        )
        return predictor
