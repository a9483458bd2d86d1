"""Supervised contrastive loss with explicit positives and negatives."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import normalize


def supcon(
    anchors: Tensor, others: Tensor, positive: Tensor, negative: Tensor, temperature: float
) -> Tensor:
    """Mean over anchors of -1/|P| sum_P log( e^{s_p} / (sum_P e^{s} + sum_N e^{s}) ), s = cos/tau.

    `positive` and `negative` are [anchors, others]; an anchor that lacks either is left out, and
    with none left the loss is 0.
    """
    s = normalize(anchors, dim=1) @ normalize(others, dim=1).T / temperature
    used = positive.any(1) & negative.any(1)
    if not used.any():
        return s.sum() * 0
    s, positive, negative = s[used], positive[used], negative[used]
    total = s.masked_fill(~(positive | negative), -float("inf")).logsumexp(1, keepdim=True)
    log_share = (s - total).masked_fill(~positive, 0)
    return -(log_share.sum(1) / positive.sum(1)).mean()
