from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from d2cp.data.images import MAX_BYTES, UnreadableError, decode, to_square
from image_files import encode, picture

JPEG = encode(picture(1, 200, 160), "JPEG", quality=90)


def values(image: Image.Image) -> list[int]:
    return np.asarray(image)[0, 0].tolist()


def flat(mode: str, colour: object, size: tuple[int, int] = (6, 4)) -> Image.Image:
    return Image.new(mode, size, colour)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("image", "format", "expected"),
    [
        (flat("RGB", (10, 20, 30)), "PNG", [10, 20, 30]),
        (flat("L", 77), "PNG", [77, 77, 77]),
        (flat("1", 1), "PNG", [255, 255, 255]),
        (flat("RGBA", (200, 0, 0, 0)), "PNG", [255, 255, 255]),
        (flat("RGBA", (200, 0, 0, 255)), "PNG", [200, 0, 0]),
        (flat("LA", (0, 128)), "PNG", [127, 127, 127]),
        (flat("CMYK", (0, 255, 255, 0)), "TIFF", [255, 0, 0]),
        (flat("I;16", 65535), "PNG", [255, 255, 255]),
        (flat("I;16", 32896), "PNG", [128, 128, 128]),
        (flat("I;16", 300), "TIFF", [1, 1, 1]),
        (flat("I;16B", 32896), "TIFF", [128, 128, 128]),
        (flat("I", 32896), "TIFF", [128, 128, 128]),
        (flat("F", 0.5), "TIFF", [128, 128, 128]),
        (flat("F", 200.0), "TIFF", [200, 200, 200]),
    ],
    ids=lambda value: value.mode if isinstance(value, Image.Image) else None,
)
def test_every_mode_becomes_the_right_rgb(
    image: Image.Image, format: str, expected: list[int]
) -> None:
    decoded = decode(encode(image, format))
    assert decoded.mode == "RGB" and decoded.size == image.size
    assert values(decoded) == pytest.approx(expected, abs=1)


def test_palette_and_its_transparency() -> None:
    image = flat("RGB", (9, 200, 9)).quantize(4)
    assert values(decode(encode(image, "PNG"))) == pytest.approx([9, 200, 9], abs=8)
    assert values(decode(encode(image, "PNG", transparency=0))) == [255, 255, 255]
    assert values(decode(encode(image, "GIF"))) == pytest.approx([9, 200, 9], abs=8)


def test_deep_grey_with_a_transparent_value_is_still_scaled() -> None:
    data = encode(flat("I;16", 32896), "PNG", transparency=5)
    assert values(decode(data)) == [128, 128, 128]


def test_cmyk_jpeg_is_not_inverted() -> None:
    red = decode(encode(flat("CMYK", (0, 255, 255, 0), (16, 16)), "JPEG", quality=95))
    assert values(red) == pytest.approx([255, 0, 0], abs=6)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_recorded_orientation_is_applied(orientation: int) -> None:
    """Stored as the camera would store it, an image comes out upright."""
    upright = Image.new("RGB", (16, 8), "black")
    upright.paste((255, 255, 255), (0, 0, 8, 4))
    stored_as = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    stored = upright if stored_as is None else upright.transpose(stored_as)
    exif = Image.Exif()
    exif[0x0112] = orientation
    decoded = decode(encode(stored, "PNG", exif=exif))
    assert np.array_equal(np.asarray(decoded), np.asarray(upright))


def png_header(width: int, height: int) -> bytes:
    """A small, valid PNG that claims a size and holds almost nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


frames = [flat("RGB", (i * 40, 0, 0)) for i in range(3)]
nan = Image.fromarray(np.full((4, 4), np.nan, np.float32))
negative = Image.fromarray(np.full((4, 4), -1, np.int32))
BAD = {
    "empty file": b"",
    "web page": b"<!DOCTYPE html><html><body>404</body></html>",
    "not an image": b"\x00\x01 nothing of the kind" * 10,
    "damaged": JPEG[: len(JPEG) // 2],
    "only 1×1": encode(flat("RGB", "red", (1, 1))),
    "only 1×9": encode(flat("RGB", "red", (1, 9))),
    "several frames": encode(frames[0], "GIF", save_all=True, append_images=frames[1:]),
    "several frames or pages": encode(frames[0], "TIFF", save_all=True, append_images=frames[1:]),
    "pixels": png_header(20_000, 20_000),
    "more than 67108864 pixels": png_header(9_000, 9_000),
    "not finite": encode(nan, "TIFF"),
    "outside 0": encode(negative, "TIFF"),
    "LAB": encode(flat("LAB", (50, 0, 0)), "TIFF"),
}


@pytest.mark.parametrize(("reason", "data"), BAD.items(), ids=list(BAD))
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_bad_files_are_refused_with_a_reason(reason: str, data: bytes) -> None:
    with pytest.raises(UnreadableError, match=reason):
        decode(data)


def test_too_many_bytes_are_refused() -> None:
    with pytest.raises(UnreadableError, match="bytes"):
        decode(JPEG + bytes(MAX_BYTES))


@given(cut=st.integers(0, len(JPEG) - 3))
@settings(max_examples=40, deadline=None)
def test_no_cut_jpeg_is_painted_grey(cut: int) -> None:
    with pytest.raises(UnreadableError):
        decode(JPEG[:cut])


@given(
    format=st.sampled_from(["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"]),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=20),
    cut=st.floats(0.2, 1),
)
@settings(max_examples=80, deadline=None)
@pytest.mark.filterwarnings("ignore")
def test_hostile_bytes_give_rgb_or_a_reason(
    format: str, flips: list[tuple[float, int]], cut: float
) -> None:
    data = bytearray(encode(picture(3), format))
    for place, change in flips:
        data[int(place * len(data))] ^= change
    try:
        decoded = decode(bytes(data[: int(cut * len(data))]))
    except UnreadableError as error:
        assert str(error)
    else:
        assert decoded.mode == "RGB" and min(decoded.size) >= 2


@given(noise=st.binary(max_size=300))
@settings(max_examples=40, deadline=None)
def test_noise_is_no_image(noise: bytes) -> None:
    with pytest.raises(UnreadableError):
        decode(noise)


def test_broken_metadata_does_not_cost_the_image() -> None:
    data = encode(picture(2), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xffgarbage")
    assert decode(data).size == (20, 16)


class TestSquare:
    def test_native_size_is_passed_through(self) -> None:
        image = picture(5, 16, 16)
        assert np.array_equal(to_square(image, 16), np.asarray(image))

    def test_cover_is_resize_of_the_short_side_then_centre_crop(self) -> None:
        image = picture(5, 64, 32)
        whole = image.resize((32, 16), Image.Resampling.BILINEAR)
        literal = np.asarray(whole)[:, 8:24]
        assert np.abs(to_square(image, 16).astype(int) - literal).max() <= 1

    def test_stretch_uses_the_whole_image(self) -> None:
        image = picture(5, 64, 32)
        literal = np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR))
        assert np.array_equal(to_square(image, 16, resize="stretch"), literal)

    def test_centre_crop_comes_first(self) -> None:
        image = Image.new("RGB", (178, 218), "white")
        image.paste("red", (0, 0, 178, 20))
        image.paste("red", (0, 198, 178, 218))
        assert to_square(image, 224, centre_crop=178).min() == 255
        tiny = to_square(picture(1, 20, 16), 8, centre_crop=178)
        assert tiny.shape == (8, 8, 3)

    def test_a_thin_strip_needs_no_huge_intermediate(self) -> None:
        assert to_square(Image.new("RGB", (60_000, 2)), 224).shape == (224, 224, 3)


def test_a_multi_picture_camera_file_gives_its_main_picture() -> None:
    buffer = io.BytesIO()
    picture(1).save(buffer, "MPO", save_all=True, append_images=[picture(2)])
    assert decode(buffer.getvalue()).size == (20, 16)
