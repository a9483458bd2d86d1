"""What decoding one image may cost: told from its header and bytes, before any pixel is made.

A decoder cannot be stopped once it runs, so time is bounded by what takes time: pixels, the scans
of a progressive JPEG that each go over all of them, pixels in decoders that are Python loops.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, _imaging

MAX_PIXELS = 64 * 2**20
MAX_SCANS = 256  # encoders write about ten
MAX_SCAN_PIXELS = 2**30
PYTHON_PIXELS = 2 * 2**20
PYTHON_DECODERS = frozenset({"ppm_plain", "ppm", "bmp_rle"})
BYTES_PER_PIXEL = 12  # the decoder's coefficients, its pixels and the RGB copy
POOL_BYTES = 2**30


def too_costly(image: Image.Image, data: bytes) -> str | None:
    """Why an opened image is not decoded, or None."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        return f"more than {MAX_PIXELS} pixels ({width}×{height})"
    if image.format == "JPEG":
        scans = data.count(b"\xff\xda")
        if scans > MAX_SCANS or scans * width * height > MAX_SCAN_PIXELS:
            return f"a JPEG of {scans} scans over {width}×{height} pixels"
    decoders = {str(tile[0]) for tile in getattr(image, "tile", ())}
    if decoders & PYTHON_DECODERS and width * height > PYTHON_PIXELS:
        return f"more than {PYTHON_PIXELS} pixels in a slow format ({', '.join(sorted(decoders))})"
    return None


class Gate:
    """Lets threads in while the memory they ask for fits; one that asks for more goes in alone."""

    def __init__(self, size: int) -> None:
        self.size = self.free = size
        self._changed = threading.Condition()

    @contextmanager
    def hold(self, size: int) -> Iterator[None]:
        size = min(size, self.size)
        with self._changed:
            self._changed.wait_for(lambda: self.free >= size)
            self.free -= size
        try:
            yield
        finally:
            with self._changed:
                self.free += size
                self._changed.notify_all()


POOL = Gate(POOL_BYTES)
# The C library keeps freed blocks of up to 32 MB for the thread that had them; larger ones go back
# to the system. Pillow's are 16 MB: every thread would keep its largest image.
_imaging.set_block_size(64 * 2**20)
