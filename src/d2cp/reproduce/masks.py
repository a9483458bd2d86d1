"""Masks of the images whose maps are measured: a digit's own stroke, or files that a person has."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from d2cp.core.arrays import Rows
from d2cp.data.images import UnreadableError, decode, to_square
from d2cp.data.pixels import centre_crop, centre_view
from d2cp.data.source import ColouredSource
from d2cp.errors import DataError
from d2cp.evaluate.saliency import stroke
from d2cp.export.inputs import read_file
from d2cp.pipeline.context import Context


def masked_rows(context: Context, folder: Path | None, rows: Rows) -> Rows:
    """Those of `rows` that have a mask."""
    if folder is None:
        if isinstance(context.table.source, ColouredSource):
            return rows
        raise DataError(
            f"{context.table.name!r} has no masks",
            expected="coloured digits, whose stroke is the mask, or a folder of masks",
            remedy="pass --masks FOLDER: for an image a/b.jpg the file a/b.png, white inside",
        )
    found = [
        row for row in rows.tolist() if mask_file(folder, str(context.table.ids[row])).is_file()
    ]
    if not found:
        first = mask_file(folder, str(context.table.ids[rows[0]]))
        raise DataError(f"no image has a mask in {folder}", expected=f"files such as {first}")
    return np.array(found, dtype=np.int64)


def mask_file(folder: Path, image: str) -> Path:
    return folder / PurePosixPath(image).with_suffix(".png")


def masks_of(context: Context, folder: Path | None, rows: Rows) -> Tensor:
    """Masks [B, H, W] in the frame that the backbone sees."""
    config = context.config.debias
    if folder is None:
        return stroke(centre_view(context.images(config.resize)[rows], config.image_size))
    crop = getattr(context.table.source, "centre_crop", None)
    made = []
    for row in rows.tolist():
        path = mask_file(folder, str(context.table.ids[row]))
        try:
            image: Image.Image = decode(read_file(path))
        except (UnreadableError, OSError) as error:
            raise DataError(f"{path} cannot be read: {error}", remedy="write it again") from None
        made.append(to_square(image, config.resize, resize="cover", centre_crop=crop).max(axis=2))
    whole = torch.from_numpy(np.stack(made))[:, None]
    return centre_crop(whole, config.image_size)[:, 0] > 127
