"""Names for the arrays of a scan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[np.float32]]
