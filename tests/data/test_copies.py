"""Copies in another size or encoding are found; different pictures are not taken for copies."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from d2cp.data import load_table, open_images
from d2cp.data.copies import copies_of, thumbnail, thumbnails
from d2cp.data.inspection import check_table
from d2cp.data.mnist import load_mnist
from image_files import encode, picture


def again(image: Image.Image, scale: float, quality: int) -> Image.Image:
    """The picture as another program would hand it on."""
    size = (round(image.width * scale), round(image.height * scale))
    buffer = io.BytesIO()
    image.resize(size, Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=quality)
    return Image.open(buffer).convert("RGB")


@pytest.mark.parametrize(("scale", "quality"), [(0.33, 75), (0.5, 60), (1.0, 40), (2.5, 90)])
def test_resized_and_recoded_pictures_are_found(scale: float, quality: int) -> None:
    pictures = [picture(seed, 120, 90) for seed in range(40)]
    known = np.stack([thumbnail(image) for image in pictures])
    asked = np.stack([thumbnail(again(image, scale, quality)) for image in pictures[::4]])
    others = np.stack([thumbnail(picture(1000 + seed, 120, 90)) for seed in range(40)])
    assert copies_of(known, np.concatenate([asked, others])) == [(i, 4 * i) for i in range(10)]


def test_digits_that_look_alike_are_no_copies() -> None:
    """Many ones differ by a pixel or two: near, but no nearer to one than to the next."""
    digits = load_mnist().train_images[:4000]
    made = np.stack([thumbnail(Image.fromarray(digit).convert("RGB")) for digit in digits])
    assert copies_of(made[:3000], made[3000:]) == []
    copy = Image.fromarray(digits[7]).convert("RGB").resize((56, 56), Image.Resampling.BICUBIC)
    assert copies_of(made[:3000], thumbnail(copy)[None]) == [(0, 7)]


def test_flat_pictures_say_nothing() -> None:
    flat = np.full((3, 16, 16, 3), 200, dtype=np.uint8)
    assert copies_of(flat, flat) == [] == copies_of(flat[:0], flat)


def test_thumbnails_of_a_store_are_those_of_its_pictures(tree, cache) -> None:
    files = {f"{c}/{i}.png": encode(picture(i + 50 * c, 64, 64)) for c in (0, 1) for i in range(12)}
    table = load_table(tree(files))
    made = thumbnails(open_images(table, 64, cache), batch=5)
    first = Image.open(table.source.root / str(table.ids[3]))
    assert made.shape == (24, 16, 16, 3) and np.array_equal(made[3], thumbnail(first))


def test_check_tells_copies_across_splits_and_sizes(tree) -> None:
    files = {}
    for split, first in (("train", 0), ("val", 100), ("test", 200)):
        for i in range(24):
            image = picture(first + i, 96, 72)
            files[f"{split}/{'ab'[i % 2]}/{i}.png"] = encode(image)
    shrunk = picture(4, 96, 72).resize((48, 36), Image.Resampling.LANCZOS)
    files["test/a/copy.jpg"] = encode(shrunk, "JPEG", quality=80)
    report = check_table(load_table(tree(files)))
    (copy,) = report.copies
    assert copy.ids == ("train/a/4.png", "test/a/copy.jpg") and copy.splits == ("train", "test")
    assert not report.clean and "another size" in " ".join(report.problems)
    assert report.sizes is not None
    assert (report.sizes.smallest, report.sizes.median) == ((48, 36), (96, 72))
    assert not report.duplicates
