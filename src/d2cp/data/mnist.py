"""MNIST from its four idx files: the embedded copy (checksums verified) or a folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from d2cp.errors import DataError

EMBEDDED = Path(__file__).parent / "embedded" / "mnist"
FILES = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_MAX_BYTES = 60_000 * 28 * 28 + 16


@dataclass(frozen=True, kw_only=True)
class Mnist:
    train_images: NDArray[np.uint8]  # [60000, 28, 28]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]  # [10000, 28, 28]
    test_labels: NDArray[np.int64]


def find_idx(folder: Path) -> dict[str, Path]:
    """The idx files of a folder, compressed or not, under either usual spelling."""
    found = {}
    for name in FILES:
        dotted = name.replace("-idx", ".idx")
        for candidate in (f"{name}.gz", name, f"{dotted}.gz", dotted):
            if (folder / candidate).is_file():
                found[name] = folder / candidate
                break
    return found


def load_mnist(folder: Path | None = None) -> Mnist:
    """MNIST; the embedded copy is compared with its checksums, a folder's with its shapes only."""
    embedded = folder is None
    folder = EMBEDDED if folder is None else folder
    paths = find_idx(folder)
    if missing := [name for name in FILES if name not in paths]:
        raise DataError(
            f"{folder} lacks {', '.join(missing)}",
            expected="the four idx files of MNIST, with or without .gz",
            remedy="install d2cp again" if embedded else "complete the folder, or use `cmnist`",
        )
    arrays = {}
    for name, path in paths.items():
        data = path.read_bytes()
        if embedded and hashlib.sha256(data).hexdigest() != FILES[name]:
            raise DataError(
                f"the embedded file {path.name} is damaged",
                expected=f"SHA-256 {FILES[name]}",
                remedy="install d2cp again",
            )
        arrays[name] = _parse_idx(_inflate(data, path), path, 3 if "images" in name else 1)
    mnist = Mnist(
        train_images=arrays["train-images-idx3-ubyte"],
        train_labels=arrays["train-labels-idx1-ubyte"].astype(np.int64),
        test_images=arrays["t10k-images-idx3-ubyte"],
        test_labels=arrays["t10k-labels-idx1-ubyte"].astype(np.int64),
    )
    shapes = [array.shape for array in arrays.values()]
    if shapes != [(60_000, 28, 28), (60_000,), (10_000, 28, 28), (10_000,)]:
        raise DataError(
            f"the idx files in {folder} have shapes {shapes}",
            expected="60,000 training and 10,000 test digits of 28×28",
            remedy="use the original MNIST files",
        )
    if max(mnist.train_labels.max(), mnist.test_labels.max()) > 9:
        raise DataError(f"labels above 9 in {folder}", expected="digits 0 to 9")
    return mnist


def _inflate(data: bytes, path: Path) -> bytes:
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(_MAX_BYTES + 1)  # bounded: a bomb is read no further
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be decompressed: {error}", remedy="copy it again") from None


def _parse_idx(data: bytes, path: Path, dimensions: int) -> NDArray[np.uint8]:
    header = 4 + 4 * dimensions
    magic = bytes((0, 0, 8, dimensions))
    if len(data) < header or data[:4] != magic:
        raise DataError(f"{path} is not an idx file of {dimensions} dimensions of bytes")
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    if len(data) - header != int(np.prod(shape, dtype=np.int64)):
        raise DataError(
            f"{path} holds {len(data) - header} values",
            expected=f"{'×'.join(map(str, shape))} as its header says",
            remedy="copy the file again: it is cut short or altered",
        )
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape)
