"""PPA (CVPR 25), project, probe, aggregate: on CLIP's image embeddings.

Project: a biased head on P x with P = I - Z^T (Z Z^T)^-1 Z, Z the class proxies, class-logit-
adjusted. a^ = whether it is wrong, g^ = (y, a^). Probe: a linear group head W with cross-entropy on
h + tau ln beta^, beta^ the groups' shares. Aggregate: w_y = sum of W_g over the groups of y.

Fidelity: as published, on x = the backbone's frozen image embedding and Z = CLIP's text embeddings
of the class names ("a photo of a ..."); tau 1 is ours. It needs a backbone with a text encoder:
proxies must not contain the shortcut, and class means do. Worse, with them projected out every
class mean is 0, and W = 0 is the optimum of the prior-adjusted loss on any data. The heads train on
frozen embeddings, 500 steps each, which costs no pass. The projector is `d2cp.debias.projection`,
never formed as a matrix.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from d2cp.backbone.text_tower import ClassText
from d2cp.compare.contract import Param, Params, Predictor, Spec
from d2cp.compare.heads import fit_head
from d2cp.compare.task import Task
from d2cp.compare.tiers import Space
from d2cp.compare.train_classifier import one_hot_mean
from d2cp.core.arrays import Rows
from d2cp.debias.projection import null_space_projection, row_space


def adjusted_cross_entropy(logits: Tensor, target: Tensor, shares: Tensor, tau: float) -> Tensor:
    """Cross-entropy on h + tau ln beta^."""
    return cross_entropy(logits + tau * shares.clamp(min=1e-12).log(), target)


def aggregated(head: nn.Linear, classes: int) -> nn.Linear:
    """w_y = sum over g in y of W_g, groups ordered as g = (G/C) y + a^."""
    whole = nn.Linear(head.in_features, classes)
    with torch.no_grad():
        whole.weight.copy_(head.weight.view(classes, -1, head.in_features).sum(1))
        whole.bias.copy_(head.bias.view(classes, -1).sum(1))
    return whole


def inferred_groups(
    x: Tensor, y: Tensor, proxies: Tensor, *, tau: float, steps: int, seed: int
) -> Tensor:
    """g^ = 2 y + a^, a^ whether a head that cannot see the proxies is wrong."""
    classes = len(proxies)
    blind = null_space_projection(x, row_space(proxies))
    prior = one_hot_mean(y, classes)
    biased = fit_head(
        blind,
        classes,
        lambda logits, i: adjusted_cross_entropy(logits, y[i], prior, tau),
        seed=seed,
        stage="ppa/biased",
        steps=steps,
    )
    with torch.no_grad():
        wrong: Tensor = (biased(blind).argmax(1) != y).long()
    return 2 * y + wrong


class EmbeddingPredictor:
    """A linear head on CLIP's image embeddings."""

    def __init__(self, space: Space, text: ClassText, head: nn.Linear, trained: int) -> None:
        self._space, self._text, self.head, self.trainable = space, text, head, trained

    def logits(self, rows: Rows) -> Tensor:
        with torch.no_grad():
            answer: Tensor = self.head(self._text.embed(self._space.frozen(rows)))
        return answer


class Ppa:
    spec = Spec(
        name="ppa",
        title="PPA",
        venue="CVPR 25",
        fidelity="as published, proxies from CLIP's text encoder: needs a backbone that has one",
        needs=frozenset({"features", "text"}),
        params={
            "tau": Param(default=1.0, choices=(0.5, 1.0, 1.5)),
            "steps": Param(default=500, choices=(500, 1000, 2000)),
        },
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        text, y = task.class_text, torch.from_numpy(task.y_train)
        x = text.embed(task.space.frozen(task.train))
        tau, steps = float(params["tau"]), int(params["steps"])
        groups = inferred_groups(x, y, text.vectors, tau=tau, steps=steps, seed=task.seed)
        task.notes.append(f"PPA: the biased head is wrong on {int((groups % 2).sum())} of {len(y)}")
        shares = one_hot_mean(groups, 2 * task.classes)
        head = fit_head(
            x,
            2 * task.classes,
            lambda logits, i: adjusted_cross_entropy(logits, groups[i], shares, tau),
            seed=task.seed,
            stage="ppa/groups",
            steps=steps,
        )
        trained = sum(p.numel() for p in head.parameters())
        return EmbeddingPredictor(task.space, text, aggregated(head, task.classes), trained)
