"""A folder with MNIST's four idx files → the paper's coloured digits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from d2cp.data.assemble import Options
from d2cp.data.coloured import cmnist
from d2cp.data.mnist import find_idx
from d2cp.data.table import Table

LAYOUT = """\
FOLDER/train-images-idx3-ubyte[.gz]
       train-labels-idx1-ubyte[.gz]
       t10k-images-idx3-ubyte[.gz]
       t10k-labels-idx1-ubyte[.gz]"""


def recognise(path: Path) -> bool:
    return path.is_dir() and bool(find_idx(path))


def load(path: Path, options: Options) -> Table:
    return replace(cmnist(path), format="mnist")
