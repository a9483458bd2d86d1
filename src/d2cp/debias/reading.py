"""From table rows to the random views in [0, 1] that stage 2 trains on."""

from __future__ import annotations

from torch import Tensor

from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Rows
from d2cp.data.augment import train_view
from d2cp.data.pixels import channels_first
from d2cp.data.store import ImageStore
from d2cp.debias.loop import Read


def training_reader(store: ImageStore, config: DebiasConfig, *, seed: int) -> Read:
    """A view depends on (seed, epoch, draw). Not on the row: the sampler draws a row of a small
    group many times an epoch, and each time should show another view."""

    def read(rows: Rows, draws: Rows, epoch: int) -> Tensor:
        return train_view(
            channels_first(store[rows]),
            draws,
            config.image_size,
            seed=seed,
            stage="debias",
            epoch=epoch,
            crop=config.augment,
            flip=config.flip,
        )

    return read
