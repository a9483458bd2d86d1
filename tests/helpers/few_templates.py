"""A few templates of noise, for banks whose repeated details do not matter."""

import torch

from d2cp.scan.lenses.templates import Templates, learn_templates


def few_templates(side: int = 24) -> Templates:
    noise = torch.rand(6, side, side, generator=torch.Generator().manual_seed(0))
    return learn_templates(noise, 2, 0, tried=12)
