"""Is there a value behind a score, or is the score a reading of the class itself?

Two accounts of the same scores are compared. In the first each class has one normal distribution:
some images of a class score lower than others, that is all. In the second a value is behind them
that the class does not decide: each value has one normal distribution, and each class its own
shares of the values (`d2cp.scan.latent`). A cue on 80% of a class makes two heaps of that class's
scores, which the second account expects and the first does not.
"""

from __future__ import annotations

import numpy as np

from d2cp.scan.batched import Floats, Ints
from d2cp.scan.latent import fit_mixture


def hidden_value(scores: Floats, y: Ints, classes: int) -> float:
    """How much likelier the second account makes an image's score, in nats an image: about 0 or
    less where the class says it all."""
    s = scores.astype(np.float64)
    columns = s.shape[1]
    means = np.stack([s[y == c].mean(0) if (y == c).any() else s.mean(0) for c in range(classes)])
    apart = ((s - means[y]) ** 2).sum(1)
    variance = float(apart.mean()) / columns + 1e-12
    of_class = -apart / (2 * variance) - columns / 2 * np.log(variance)

    mixture = fit_mixture(scores, y, classes)
    far = ((s[:, None] - mixture.centres) ** 2).sum(2)
    logs = np.log(mixture.shares[y] + 1e-12) - far / (2 * mixture.variance)
    of_value = np.logaddexp.reduce(logs, axis=1) - columns / 2 * np.log(mixture.variance)
    return float((of_value - of_class).mean())
