"""From table rows to images in [0, 1]: random views for training, the centre for evaluation."""

from __future__ import annotations

from torch import Tensor

from d2cp.config.debias import DebiasConfig
from d2cp.data.augment import eval_view, to_tensor, train_view
from d2cp.data.store import ImageStore
from d2cp.debias.loop import Read, Rows


def training_reader(store: ImageStore, config: DebiasConfig, *, seed: int) -> Read:
    """A view depends on (seed, epoch, draw). Not on the row: the sampler draws a row of a small
    group many times an epoch, and each time should show another view."""

    def read(rows: Rows, draws: Rows, epoch: int) -> Tensor:
        return train_view(
            to_tensor(store[rows]),
            draws,
            config.image_size,
            seed=seed,
            stage="debias",
            epoch=epoch,
            crop=config.augment,
            flip=config.flip,
        )

    return read


def evaluation_images(store: ImageStore, rows: Rows, image_size: int) -> Tensor:
    return eval_view(to_tensor(store[rows]), image_size)
