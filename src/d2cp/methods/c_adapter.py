"""C-Adapter (NeurIPS 22), contrastive adapters: on frozen features throughout.

Adapter Linear(D, 128)-BN-ReLU-Linear(128, D); logits 100 cos(z, class vector). Anchors: samples the
zero-shot classifier gets wrong; positives: same class, right; negatives: nearest neighbours of
other classes; SupCon at temperature 0.1; SGD 1e-3, momentum 0.9, weight decay 5e-5.

Fidelity: adapter, sets and loss as published. Adapted, for backbones without a text encoder: a
linear probe stands for the zero-shot classifier and class means for the class vectors, and the
class vectors join each anchor's positives and negatives, which ties the adapter to their space.
Features are read in units of the training images, and every image is judged by a probe that was
not fitted on it: without the first, class means are nearly one vector (cosine .97 on DINOv2 of
bird photographs, so that an anchor is drawn to both), without the second, the probe's few errors
on its own images are accidents, and no zero-shot classifier has seen them. Learning rate:
searched, since ours are few steps.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.contrastive import supcon
from d2cp.compare.heads import fit_class_head
from d2cp.compare.task import Batch, Order, Task, trainable
from d2cp.compare.tiers import Space
from d2cp.core.arrays import Rows
from d2cp.core.rng import numpy_generator, permutation, torch_generator

SCALE = 100.0
POSITIVES = NEGATIVES = 4  # an anchor comes with so many of each
NEIGHBOURS = 64  # negatives are drawn from so many nearest samples of other classes
FOLDS = 5  # of the probe


def class_means(features: Tensor, y: Tensor, classes: int) -> Tensor:
    """[classes, D]; zero for a class without samples."""
    sums = features.new_zeros(classes, features.shape[1]).index_add(0, y, features)
    return sums / torch.bincount(y, minlength=classes).clamp(min=1)[:, None]


class FrozenPredictor:
    """A module on frozen features."""

    def __init__(self, space: Space, module: nn.Module, trained: int) -> None:
        self._space, self.module, self.trainable = space, module, trained

    def logits(self, rows: Rows) -> Tensor:
        with torch.no_grad():
            inputs = self._space.frozen(rows).to(next(self.module.parameters()).device)
            answer: Tensor = self.module(inputs).cpu()
        return answer


class Adapter(nn.Module):
    """z = Linear-BN-ReLU-Linear(x), x in units of `training`; forward gives 100 cos(z, class
    vector)."""

    vectors: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(self, training: Tensor, y: Tensor, classes: int, hidden: int, seed: int) -> None:
        super().__init__()
        self.register_buffer("mean", training.mean(0))
        self.register_buffer("scale", training.std(0).clamp(min=1e-6))
        vectors = class_means(self.units(training), y, classes)
        width = vectors.shape[1]
        self.down, self.norm, self.up = (
            nn.Linear(width, hidden),
            nn.BatchNorm1d(hidden),
            nn.Linear(hidden, width),
        )
        generator = torch_generator(seed, "methods/c_adapter")
        with torch.no_grad():
            for layer in (self.down, self.up):
                bound = layer.in_features**-0.5
                uniform = torch.rand(layer.weight.shape, generator=generator)
                layer.weight.copy_((2 * uniform - 1) * bound)
                layer.bias.zero_()
        self.register_buffer("vectors", vectors)

    def units(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.scale

    def features(self, x: Tensor, *, training: bool) -> Tensor:
        self.norm.train(training)
        z: Tensor = self.up(torch.relu(self.norm(self.down(self.units(x)))))
        return z

    def forward(self, x: Tensor) -> Tensor:
        z = normalize(self.features(x, training=False), dim=1)
        return SCALE * z @ normalize(self.vectors, dim=1).T


def probed(x: Tensor, y: Tensor, classes: int, *, seed: int) -> Tensor:
    """Logits of every sample by a linear probe on the other folds."""
    order = permutation(seed, "c_adapter/folds", 0, len(y))
    logits = x.new_zeros(len(y), classes)
    for held in np.array_split(order, min(FOLDS, len(y))):
        rest = torch.from_numpy(np.setdiff1d(order, held))
        probe = fit_class_head(x[rest], y[rest], classes, seed=seed, stage="c_adapter/probe")
        part = torch.from_numpy(held)
        with torch.no_grad():
            logits[part] = probe(x[part])
    return logits


def neighbours_of_other_classes(x: Tensor, y: Tensor, anchors: Rows, count: int) -> Rows:
    """[anchors, count] positions of the nearest samples (cosine) of another class."""
    unit = normalize(x, dim=1)
    index = torch.from_numpy(anchors)
    pieces = []
    for part in torch.split(index, 512):
        near = unit[part] @ unit.T
        near.masked_fill_(y[part][:, None] == y[None, :], -2)
        pieces.append(near.topk(min(count, near.shape[1]), dim=1).indices)
    found: Rows = torch.cat(pieces).numpy()
    return found


def tuple_order(
    anchors: Rows, near: Rows, right: Rows, y: Rows, tuples: int, draws: int, *, seed: int
) -> Order:
    """Batches of `tuples` x (anchor, positives, negatives), laid out one tuple after another."""
    pools = {int(c): np.flatnonzero((y == c) & right) for c in np.unique(y)}
    for c, pool in pools.items():
        if not len(pool):
            pools[c] = np.flatnonzero(y == c)

    def positions(epoch: int) -> Rows:
        generator = numpy_generator(seed, "c_adapter/tuples", epoch)
        count = draws // (1 + POSITIVES + NEGATIVES)
        which = generator.integers(len(anchors), size=count)
        rows = np.empty((count, 1 + POSITIVES + NEGATIVES), dtype=np.int64)
        rows[:, 0] = anchors[which]
        for c, pool in pools.items():
            own = y[rows[:, 0]] == c
            rows[own, 1 : 1 + POSITIVES] = generator.choice(pool, size=(own.sum(), POSITIVES))
        picks = generator.integers(near.shape[1], size=(count, NEGATIVES))
        rows[:, 1 + POSITIVES :] = near[which[:, None], picks]
        return rows.ravel()

    return positions


def tuple_loss(z: Tensor, vectors: Tensor, y: Tensor, temperature: float) -> Tensor:
    """SupCon over tuples laid out as (anchor, positives, negatives), class vectors included."""
    grouped = z.view(-1, 1 + POSITIVES + NEGATIVES, z.shape[1])
    count = len(grouped)
    others = torch.cat([grouped[:, 1:].flatten(0, 1), vectors])
    own = torch.eye(count, dtype=torch.bool, device=z.device).repeat_interleave(
        POSITIVES + NEGATIVES, dim=1
    )
    is_positive = (torch.arange(POSITIVES + NEGATIVES, device=z.device) < POSITIVES).repeat(count)
    of_class = one_hot(y.view(count, -1)[:, 0], len(vectors)).bool()
    positive = torch.cat([own & is_positive, of_class], dim=1)
    negative = torch.cat([own & ~is_positive, ~of_class], dim=1)
    return supcon(grouped[:, 0], others, positive, negative, temperature)


class CAdapter:
    spec = Spec(
        name="c_adapter",
        title="C-Adapter",
        venue="NeurIPS 22",
        fidelity="as published; linear probe and class means in place of CLIP's text encoder",
        needs=frozenset({"features"}),
        params={
            "lr": Param(default=0.01, low=1e-3, high=1e-1, log=True, published="1e-3"),
            "weight_decay": Param(default=5e-5, low=1e-5, high=1e-2, log=True, published="5e-5"),
            "temperature": Param(default=0.1, choices=(0.05, 0.1), published="0.1"),
            "hidden": Param(default=128, published="128"),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        x, y = task.space.frozen(task.train), torch.from_numpy(task.y_train)
        logits = probed(x, y, task.classes, seed=task.seed)
        right = (logits.argmax(1) == y).numpy()
        anchors = np.flatnonzero(~right)
        if not len(anchors):
            margin = logits.gather(1, y[:, None])[:, 0]
            anchors = margin.argsort()[: max(1, len(y) // 20)].numpy()
            task.notes.append("C-Adapter: the probe errs nowhere; its least sure samples stand in")
        else:
            task.notes.append(f"C-Adapter: {len(anchors)} of {len(y)} samples are anchors")
        model = Adapter(x, y, task.classes, int(params["hidden"]), task.seed)
        near = neighbours_of_other_classes(model.units(x), y, anchors, NEIGHBOURS)
        size = 1 + POSITIVES + NEGATIVES
        tuples = max(1, min(task.config.batch_size, len(y)) // size)
        temperature = float(params["temperature"])

        def step(batch: Batch) -> tuple[Tensor, dict[str, float]]:
            z = model.features(batch.images, training=True)
            return tuple_loss(z, model.vectors, task.labels(batch.rows), temperature), {}

        predictor = FrozenPredictor(task.space, model, trainable(model))
        task.fit(
            model,
            step,
            stage="c_adapter",
            passes=task.budget,
            order=lambda draws: tuple_order(
                anchors, near, right, task.y_train, tuples, draws, seed=task.seed
            ),
            logits=predictor.logits,
            changes={"batch_size": tuples * size, "lr_schedule": "constant"},
            read=lambda rows, _draws, _epoch: task.space.frozen(rows),
        )
        return predictor
