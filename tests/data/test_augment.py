from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from d2cp.data.augment import (
    crop_and_flip,
    train_view,
    warp,
)
from d2cp.data.pixels import centre_crop, channels_first, to_unit

WHERE = {"seed": 3, "stage": "stage", "epoch": 5}


def images(n: int, side: int = 20) -> Tensor:
    return channels_first(
        np.random.default_rng(0).integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    )


def test_layout_and_range() -> None:
    array = np.arange(2 * 3 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3, 3)
    tensor = channels_first(array)
    assert tensor.shape == (2, 3, 3, 3) and tensor.dtype == torch.uint8
    assert tensor[1, 2, 0, 1] == array[1, 0, 1, 2]
    assert to_unit(torch.tensor([255], dtype=torch.uint8)).item() == 1.0


def test_a_row_does_not_depend_on_its_batch() -> None:
    batch, index = images(9), np.arange(100, 109)
    whole = train_view(batch, index, 16, **WHERE)
    for keep in ([4], [8, 2], [7, 6, 5, 0]):
        part = train_view(batch[keep], index[keep], 16, **WHERE)
        assert torch.equal(part, whole[keep])


def test_views_change_with_epoch_seed_and_stage() -> None:
    batch, index = images(4), np.arange(4)
    first = train_view(batch, index, 16, **WHERE)
    assert torch.equal(first, train_view(batch, index, 16, **WHERE))
    for other in ({"seed": 4}, {"stage": "else"}, {"epoch": 6}):
        assert not torch.equal(first, train_view(batch, index, 16, **{**WHERE, **other}))


def test_identity_map_and_flip_are_exact() -> None:
    batch = images(2)
    identity = torch.tensor([[1.0, 0, 0], [0, 1.0, 0]]).expand(2, 2, 3)
    torch.testing.assert_close(warp(batch, identity, 20), to_unit(batch), atol=1e-5, rtol=0)
    mirrored = identity.clone()
    mirrored[:, 0, 0] = -1
    torch.testing.assert_close(
        warp(batch, mirrored, 20), to_unit(batch).flip(-1), atol=1e-5, rtol=0
    )


def test_crops_have_the_asked_area_and_aspect_and_lie_inside() -> None:
    maps = crop_and_flip(np.arange(4000), **WHERE).double()
    width, height = maps[:, 0, 0].abs(), maps[:, 1, 1]
    uncut = (width < 1) & (height < 1)
    area, aspect = (width * height)[uncut], (width / height)[uncut]
    assert area.min() >= 0.7 - 1e-5 and area.max() <= 1
    assert aspect.min() >= 0.75 - 1e-5 and aspect.max() <= 4 / 3 + 1e-5
    assert (maps[:, 0, 2].abs() + width).max() <= 1 + 1e-6
    assert (maps[:, 1, 2].abs() + height).max() <= 1 + 1e-6
    assert 0.47 < (maps[:, 0, 0] < 0).double().mean() < 0.53


def test_a_crop_equals_a_slow_literal_one() -> None:
    """Each output pixel sampled by hand at the place the map sends it to."""
    batch, index = images(3, 12), np.array([5, 9, 2])
    maps = crop_and_flip(index, **WHERE)
    fast = warp(batch, maps, 7)
    source = to_unit(batch)
    for b in range(3):
        for i in range(7):
            for j in range(7):
                x, y = (2 * j + 1) / 7 - 1, (2 * i + 1) / 7 - 1
                u = (float(maps[b, 0, 0]) * x + float(maps[b, 0, 2]) + 1) * 6 - 0.5
                v = (float(maps[b, 1, 1]) * y + float(maps[b, 1, 2]) + 1) * 6 - 0.5
                u, v = min(max(u, 0), 11), min(max(v, 0), 11)
                x0, y0 = int(u), int(v)
                x1, y1 = min(x0 + 1, 11), min(y0 + 1, 11)
                fx, fy = u - x0, v - y0
                top = source[b, :, y0, x0] * (1 - fx) + source[b, :, y0, x1] * fx
                bottom = source[b, :, y1, x0] * (1 - fx) + source[b, :, y1, x1] * fx
                expected = top * (1 - fy) + bottom * fy
                torch.testing.assert_close(fast[b, :, i, j], expected, atol=1e-4, rtol=0)


def test_centre_crop_is_pixel_exact() -> None:
    batch = images(2, 256)
    assert torch.equal(centre_crop(batch, 224), batch[:, :, 16:240, 16:240])
    assert torch.equal(to_unit(centre_crop(batch, 224)), to_unit(batch[:, :, 16:240, 16:240]))
    with pytest.raises(ValueError, match="no centre crop"):
        centre_crop(batch, 300)


def test_digits_are_left_as_they_are() -> None:
    batch = images(3, 28)
    view = train_view(batch, np.arange(3), 28, crop=False, flip=False, **WHERE)
    assert torch.equal(view, to_unit(batch))


def test_flip_alone_keeps_or_mirrors_each_image() -> None:
    batch = images(40, 16)
    view = train_view(batch, np.arange(40), 16, crop=False, flip=True, **WHERE)
    plain = to_unit(batch)
    kept = [(view[i] - plain[i]).abs().max() < 1e-4 for i in range(40)]
    mirrored = [(view[i] - plain[i].flip(-1)).abs().max() < 1e-4 for i in range(40)]
    assert all(k != m for k, m in zip(kept, mirrored, strict=True)) and 5 < sum(kept) < 35
