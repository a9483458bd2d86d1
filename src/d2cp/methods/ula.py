"""uLA (NeurIPS 23), unsupervised logit adjustment.

A linear head on frozen features is the bias predictor y_b; P^(y_b, y), a soft confusion matrix, is
an exponential average (.999) over batches; train on logits + tau log P^(y | y_b); no adjustment at
test.

Fidelity: as published with tau 1, on prompts. Adapted: the frozen features are the backbone's own;
selection is the comparison's rule, where the original takes balanced accuracy over (y_b, y).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.heads import fit_class_head
from d2cp.compare.task import Batch, ModelPredictor, Task, trainable
from d2cp.compare.tiers import Classifier
from d2cp.compare.train_classifier import train_classifier


def updated_confusion(confusion: Tensor, bias: Tensor, y: Tensor, decay: float) -> Tensor:
    """P^(y_b, y) <- decay P^ + (1 - decay) mean over the batch of softmax(bias) (x) onehot(y)."""
    soft = bias.softmax(1).T @ one_hot(y, confusion.shape[1]).to(bias) / len(y)
    return decay * confusion + (1 - decay) * soft


def adjustment(confusion: Tensor, answers: Tensor, tau: float) -> Tensor:
    """tau log P^(y | y_b) for each sample's y_b [n] -> [n, classes]."""
    conditional = confusion / confusion.sum(1, keepdim=True).clamp(min=1e-12)
    return tau * conditional.clamp(min=1e-6).log()[answers]


class Confusion(nn.Module):
    """P^, kept with the model in checkpoints."""

    joint: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.register_buffer("joint", torch.zeros(classes, classes))


class ULa:
    spec = Spec(
        name="ula",
        title="uLA",
        venue="NeurIPS 23",
        fidelity="as published, bias head on the backbone's frozen features; selection by the rule",
        needs=frozenset({"prompts", "features"}),
        params={
            "tau": Param(default=1.0, choices=(0.5, 1.0, 2.0), published="1"),
            "decay": Param(default=0.999, choices=(0.99, 0.999), published="0.999"),
            "bias_steps": Param(default=500, choices=(50, 200, 500)),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        frozen = task.space.frozen(task.train)
        head = fit_class_head(
            frozen,
            torch.from_numpy(task.y_train),
            task.classes,
            seed=task.seed,
            stage="ula/bias",
            steps=int(params["bias_steps"]),
        )
        tau, decay = float(params["tau"]), float(params["decay"])
        with torch.no_grad():
            bias = torch.zeros(len(task.y), task.classes)
            bias[torch.from_numpy(task.train)] = head(frozen)
            right = (head(frozen).argmax(1).numpy() == task.y_train).mean()
        task.notes.append(f"uLA: the bias head is right on {100 * right:.1f}% of training images")
        state = Confusion(task.classes)

        def loss(model: Classifier, batch: Batch, y: Tensor) -> Tensor:
            guess = bias[batch.rows.cpu()].to(batch.images.device)
            state.joint.copy_(updated_confusion(state.joint, guess, y, decay))
            shift = adjustment(state.joint, guess.argmax(1), tau)
            return cross_entropy(model(batch.images, batch.step) + shift, y)

        model = train_classifier(task, loss, stage="ula", state=state)
        return ModelPredictor(model, task.space, trainable(model, head))
