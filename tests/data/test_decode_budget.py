"""What an image may cost, and that large ones become the same pixels in bands."""

import io
import struct
import threading

import numpy as np
import pytest
from PIL import Image

from d2cp.data import decode_budget, images
from d2cp.data.decode_budget import Gate
from d2cp.data.delimited import parse
from d2cp.data.images import UnreadableError, decode
from d2cp.errors import DataError
from image_files import encode, picture


def scans_of(data: bytes, times: int) -> bytes:
    """A progressive JPEG with its last scan repeated."""
    start = data.rindex(b"\xff\xda")
    return data[:start] + data[start:-2] * times + data[-2:]


def test_a_jpeg_of_many_scans_is_refused_before_it_is_decoded(monkeypatch):
    plain = encode(picture(1, 64, 64), "JPEG", progressive=True)
    assert decode(plain).size == (64, 64)
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(UnreadableError, match=r"a JPEG of \d{3,} scans"):
        decode(scans_of(plain, 300))
    monkeypatch.setattr(decode_budget, "MAX_SCAN_PIXELS", 64 * 64 * 2)
    with pytest.raises(UnreadableError, match="scans over 64×64 pixels"):
        decode(plain)


def test_a_tiff_of_many_frames_is_refused_after_the_second(monkeypatch):
    frames = [picture(k, 4, 4) for k in range(40)]
    data = encode(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    read = []
    from PIL import TiffImagePlugin

    load = TiffImagePlugin.ImageFileDirectory_v2.load
    monkeypatch.setattr(
        TiffImagePlugin.ImageFileDirectory_v2,
        "load",
        lambda self, file: read.append(1) or load(self, file),
    )
    with pytest.raises(UnreadableError, match="several frames"):
        decode(data)
    assert len(read) <= 2


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "TIFF"])
def test_several_frames_are_refused_and_one_is_not(format):
    frames = [picture(k, 12, 12) for k in range(3)]
    with pytest.raises(UnreadableError, match="several frames"):
        decode(encode(frames[0], format, save_all=True, append_images=frames[1:]))
    assert decode(encode(frames[0], format)).size == (12, 12)


@pytest.mark.parametrize("kind", ["P3", "P5 of 300 levels", "RLE bitmap"])
def test_slow_decoders_have_fewer_pixels(kind, monkeypatch):
    if kind == "P3":
        data = b"P3\n4 4\n255\n" + b"9 " * 48
    elif kind.startswith("P5"):
        data = b"P5\n4 4\n300\n" + bytes(32)
    else:
        data = encode(Image.new("L", (4, 4)), "BMP")
        data = data[:30] + struct.pack("<I", 1) + data[34:]  # compression: RLE8
    monkeypatch.setattr(decode_budget, "PYTHON_PIXELS", 15)
    with pytest.raises(UnreadableError, match="in a slow format"):
        decode(data)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "CMYK", "F", "I;16"])
def test_bands_give_the_pixels_of_the_whole(mode, monkeypatch):
    draw = np.random.default_rng(0)
    if mode == "F":
        image = Image.fromarray(draw.random((9, 7), dtype=np.float32))
    elif mode == "I;16":
        image = Image.fromarray(draw.integers(0, 65536, (9, 7)).astype(np.uint16))
    else:
        bands = len(Image.new(mode, (1, 1)).getbands())
        shape = (9, 7) if bands == 1 else (9, 7, bands)
        image = Image.fromarray(draw.integers(0, 256, shape).astype(np.uint8), mode)
        if mode == "P":
            image.putpalette(draw.integers(0, 256, 768).astype(np.uint8).tobytes())
            image.info["transparency"] = 3
    whole = np.asarray(images.to_rgb(image))
    monkeypatch.setattr(images, "BAND_PIXELS", 14)
    assert np.array_equal(np.asarray(images.to_rgb(image)), whole)
    assert whole.std() > 10


def test_a_float_beyond_one_in_any_band_sets_the_scale_of_all(monkeypatch):
    monkeypatch.setattr(images, "BAND_PIXELS", 4)
    values = np.full((6, 4), 0.6, dtype=np.float32)
    values[5, 3] = 200
    data = io.BytesIO()
    Image.fromarray(values).save(data, "TIFF")
    assert np.asarray(decode(data.getvalue()))[0, 0].tolist() == [1, 1, 1]


def test_the_pool_lets_in_what_fits_and_a_giant_alone():
    gate, inside, order = Gate(10), threading.Event(), []

    def second():
        inside.set()
        with gate.hold(99):
            order.append("second")

    with gate.hold(4), gate.hold(6):
        assert gate.free == 0
        thread = threading.Thread(target=second)
        thread.start()
        inside.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "second"] and gate.free == 10


def test_decoding_asks_the_pool(monkeypatch):
    asked = []

    class Spy(Gate):
        def hold(self, size):
            asked.append(size)
            return super().hold(size)

    monkeypatch.setattr(images, "POOL", Spy(10**9))
    decode(encode(picture(1, 20, 16)))
    assert asked == [20 * 16 * decode_budget.BYTES_PER_PIXEL]


def test_freed_pixels_go_back_to_the_system():
    assert Image.core.get_block_size() > 32 * 2**20


def test_a_name_as_long_as_a_book_is_refused_with_its_line():
    text = "filename,y\na.png,0\n" + "x" * 130_000 + ",1\n"
    with pytest.raises(DataError, match="line 3: a field of 130000 characters"):
        parse(text, "metadata.csv")
