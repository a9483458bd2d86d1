from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest

from d2cp.data import load_mnist, load_table, open_images
from d2cp.data import mnist as mnist_module
from d2cp.data.coloured import CMNIST10_RHO
from d2cp.data.table import Table
from d2cp.errors import DataError


@pytest.fixture(scope="module")
def cmnist() -> Table:
    return load_table("cmnist")


def test_cmnist_has_the_twelve_published_counts(cmnist: Table) -> None:
    found = cmnist.counts()
    assert [list(found[split].values()) for split in ("train", "val", "test")] == [
        [254, 25284, 24231, 231],
        [45, 5013, 4893, 49],
        [48, 5091, 4815, 46],
    ]
    assert cmnist.expected_counts == {s: found[s] for s in ("train", "val", "test")}


def test_balanced_test_digits_are_the_test_digits_in_balanced_colours(cmnist: Table) -> None:
    test, balanced = cmnist.rows("test"), cmnist.rows("test_balanced")
    digits = load_mnist().test_labels
    assert np.array_equal(cmnist.y[test], cmnist.y[balanced])
    assert np.array_equal(cmnist.y[balanced], digits > 4)
    colours = cmnist.a
    assert colours is not None
    for digit in range(10):
        share = np.bincount(colours[balanced][digits == digit], minlength=2)
        assert abs(share[0] - share[1]) <= 1
    store = open_images(cmnist, 28)
    pair = store[np.array([test[7], balanced[7]])]
    assert np.array_equal(pair[0].max(-1), pair[1].max(-1))


def test_colour_is_in_the_pixels_exactly(cmnist: Table) -> None:
    store, mnist = open_images(cmnist, 28), load_mnist()
    rows = cmnist.rows("train")[:200]
    pixels = store[rows]
    assert pixels.dtype == np.uint8 and pixels.shape == (200, 28, 28, 3)
    assert cmnist.a is not None
    for image, grey, colour in zip(pixels, mnist.train_images, cmnist.a[rows], strict=False):
        literal = np.zeros((28, 28, 3), np.uint8)
        literal[..., colour] = grey
        assert np.array_equal(image, literal)


def test_cmnist10_is_a_ten_class_shortcut() -> None:
    table = load_table("cmnist10")
    assert table.n_classes == table.n_values == 10 and table.a is not None
    for split in ("train", "val", "test"):
        rows = table.rows(split)
        agree = (table.y[rows] == table.a[rows]).mean()
        assert abs(agree - CMNIST10_RHO) < 0.008
        others = np.bincount(((table.a - table.y) % 10)[rows], minlength=10)[1:]
        assert others.min() > 0.7 * others.mean()
    balanced = list(table.counts()["test_balanced"].values())
    for digit in range(10):
        cells = balanced[10 * digit : 10 * digit + 10]
        assert max(cells) - min(cells) <= 1


def test_unbiased_digits_have_no_relation_of_colour_and_label() -> None:
    table = load_table("digits-unbiased")
    assert table.a is not None
    for split in table.split_names:
        rows = table.rows(split)
        assert abs(np.corrcoef(table.y[rows], table.a[rows])[0, 1]) < 0.03
        assert abs(table.a[rows].mean() - 0.5) < 0.03


def test_limit_and_repetition_give_the_same_rows() -> None:
    first, second = (load_table("cmnist", limit=300, seed=4) for _ in range(2))
    assert first.fingerprint() == second.fingerprint() and len(first) == 1200
    assert min(min(cells.values()) for cells in first.counts().values()) >= 1


def test_a_folder_of_idx_files_is_cmnist_too(tmp_path: Path, cmnist: Table) -> None:
    for name in mnist_module.FILES:
        data = gzip.decompress((mnist_module.EMBEDDED / f"{name}.gz").read_bytes())
        (tmp_path / name).write_bytes(data)
    table = load_table(tmp_path)
    assert table.format == "mnist" and table.fingerprint() == cmnist.fingerprint()
    images = tmp_path / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])
    with pytest.raises(DataError, match="as its header says"):
        load_table(tmp_path)
    images.unlink()
    with pytest.raises(DataError, match="lacks train-images"):
        load_table(tmp_path)


def test_an_altered_embedded_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "mnist"
    shutil.copytree(mnist_module.EMBEDDED, copy)
    labels = copy / "t10k-labels-idx1-ubyte.gz"
    data = bytearray(labels.read_bytes())
    data[2000] ^= 1
    labels.write_bytes(bytes(data))
    monkeypatch.setattr(mnist_module, "EMBEDDED", copy)
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte\.gz is damaged"):
        load_mnist()
