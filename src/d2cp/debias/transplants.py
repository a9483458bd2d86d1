"""Features of images whose cue was exchanged, as members of the groups they then belong to.

Few images of a class go against the finding, and a sampler that draws them often learns these few
by heart. An image with the cue of another value has the class of the image and the value of the
cue: every image of a class then stands on both sides of the finding, and the images that truly go
against it are joined by hundreds. Controls keep their value. Exchanged images that were not trained
on help to choose settings, and, where few images really go against the finding, to say whether the
result is better than plain training: less what the cutting costs either model, as controls tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from d2cp.core.arrays import Bools, Floats, Ints, Rows
from d2cp.debias.labels import Labels, against, usual_values
from d2cp.debias.twins import usual_bits


@dataclass(frozen=True)
class Transplants:
    """Of image `rows[i]`: features with the cue of value `values[i]`, and of its control."""

    rows: Rows
    values: Ints
    exchanged: Tensor
    controls: Tensor

    def behind(self, features: Tensor) -> Tensor:
        """Features of all rows, of the exchanged images, of their controls."""
        return torch.cat([features, self.exchanged, self.controls])

    def join(self, labels: Labels) -> Labels:
        """Labels of `behind`'s rows: those made of a training image train too."""
        assert labels.a is not None
        count, origin = len(labels.y), np.concatenate([self.rows, self.rows])
        y = np.concatenate([labels.y, labels.y[origin]])
        a = np.concatenate([labels.a, self.values, labels.a[self.rows]])
        of_training = np.flatnonzero(np.isin(origin, labels.train))
        joined = replace(
            labels, y=y, a=a, train=np.concatenate([labels.train, count + of_training])
        )
        if labels.shares is not None:
            sure = np.eye(labels.values)[self.values]
            shares = np.concatenate([labels.shares, sure, labels.shares[self.rows]])
            joined = replace(joined, shares=shares)
        if labels.true_a is not None:
            joined = replace(joined, true_a=np.concatenate([labels.true_a, labels.true_a[origin]]))
        if labels.y_xrm is None or labels.a_xrm is None:
            return joined
        groups = labels.values * y + a
        bits = [self._bits(bit, groups, labels.train) for bit in (labels.y_xrm, labels.a_xrm)]
        return replace(joined, y_xrm=bits[0], a_xrm=bits[1])

    def held(self, rows: Rows, count: int) -> Rows:
        """`rows` of a table of `count`, and of `behind`'s those that are made of them."""
        made = count + np.flatnonzero(np.isin(self.rows, rows))
        return np.concatenate([rows, made, made + len(self.rows)])

    def is_control(self, rows: Rows, count: int) -> Bools:
        """Which of `behind`'s rows are controls."""
        return rows >= count + len(self.rows)

    def origin(self, rows: Rows, count: int) -> Rows:
        """Which image each of `behind`'s rows is made of."""
        return np.concatenate([np.arange(count), self.rows, self.rows])[rows]

    def against(self, labels: Labels) -> Floats:
        """How surely each of `behind`'s rows goes against the finding: an exchanged image by its
        donor's value, a control as its image does."""
        own = against(labels)
        theirs = self.values != usual_values(labels)[labels.y[self.rows]]
        return np.concatenate([own, theirs.astype(np.float64), own[self.rows]])

    def _bits(self, bit: Ints, groups: Ints, train: Rows) -> Ints:
        count = len(bit)
        theirs = groups[count : count + len(self.rows)]
        made = usual_bits(bit, groups[:count], train, bit[self.rows], theirs)
        return np.concatenate([bit, made, bit[self.rows]])
