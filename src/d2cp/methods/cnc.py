"""CNC (ICML 22), correct-n-contrast: pull together same class, different ERM prediction.

An ERM predicts y^. Anchor: a sample that is right; positives: same class, other y^; negatives:
same y^, other class. Loss 0.75 SupCon + 0.25 cross-entropy.

Fidelity: sets, weights and temperature as published, on prompts. Adapted: the original draws
positives and negatives anchor by anchor; here batches hold all cells (y, y^) in equal shares and
each anchor takes its sets from the batch.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.contrastive import supcon
from d2cp.compare.task import Batch, ModelPredictor, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.compare.train_classifier import predicted, split_budget, train_classifier


def contrastive_sets(y: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(anchor [n], positive [n, n], negative [n, n]): see the file's first lines."""
    same_class = y[:, None] == y[None, :]
    same_answer = predicted[:, None] == predicted[None, :]
    return y == predicted, same_class & ~same_answer, same_answer & ~same_class


class Cnc:
    spec = Spec(
        name="cnc",
        title="CNC",
        venue="ICML 22",
        fidelity="loss and sets as published, on prompts; sets taken from cell-balanced batches",
        params={
            "identify": Param(default=0.2, choices=(0.05, 0.1, 0.2, 0.4)),
            "weight": Param(default=0.75, choices=(0.5, 0.75, 0.9), published="0.75"),
            "temperature": Param(default=0.1, choices=(0.05, 0.1), published="0.1, CelebA 0.05"),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        first, rest = split_budget(task, float(params["identify"]))
        identifier = train_classifier(task, stage="identify", passes=first, select=False)
        answers = predicted(task, identifier)
        wrong = int((answers != task.y_train).sum())
        task.notes.append(f"CNC: ERM is wrong on {wrong} of {len(answers)} training images")
        of_row = task.lookup(answers)
        weight, temperature = float(params["weight"]), float(params["temperature"])

        def loss(model: Classifier, batch: Batch, y: Tensor) -> Tensor:
            h = model.features(batch.images, batch.step)
            anchor, positive, negative = contrastive_sets(y, of_row(batch.rows))
            contrast = supcon(h[anchor], h, positive[anchor], negative[anchor], temperature)
            return weight * contrast + (1 - weight) * cross_entropy(model.head(h), y)

        cells = task.classes * task.y_train + answers
        model = train_classifier(
            task,
            loss,
            stage="cnc",
            passes=rest,
            order=lambda draws: task.weighted(cells, 1.0, draws),
        )
        return ModelPredictor(model, task.space, trainable(model))
