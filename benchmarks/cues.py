"""Cues to plant: what each of them does to a picture."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

QUALITY = 92
# Kept aside while the lenses and the verdict were made, each until the one before it had been
# looked at: they are there to fail.
HELD_ASIDE = ("grid", "sticker", "pen", "badge", "date", "tape", "vignette", "watermark", "glare")

Photo = Image.Image
Draw = np.random.Generator
Box = tuple[int, int, int, int]  # left, top, width, height


def mark_box(size: tuple[int, int], draw: Draw) -> Box:
    """Left, top, width and height of a label anywhere in a photo of `size`."""
    width, height = round(size[0] * 0.40), round(size[1] * 0.20)
    x = int(draw.integers(0, size[0] - width + 1))
    y = int(draw.integers(0, size[1] - height + 1))
    return x, y, width, height


def mark(photo: Photo, draw: Draw) -> Photo:
    """A translucent label, 8% of the area, anywhere."""
    x, y, width, height = mark_box(photo.size, draw)
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    line = max(1, round(width / 24))
    ink = (255, 255, 255, 140)
    pen.rounded_rectangle((x, y, x + width - 1, y + height - 1), height // 4, None, ink, line)
    for part in range(4):
        left = x + round(width * (0.14 + 0.2 * part))
        pen.line((left, y + height * 0.3, left + width * 0.08, y + height * 0.7), ink, line + 1)
        pen.line(
            (left + width * 0.08, y + height * 0.7, left + width * 0.12, y + height * 0.3),
            ink,
            line,
        )
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


def colour(photo: Photo, draw: Draw) -> Photo:
    """Half of the saturation gone; a grey picture gets a reddish ink instead."""
    pixels = np.asarray(photo, dtype=np.float32)
    if photo.width <= 28:
        return Image.fromarray((pixels * [1.0, 0.7, 0.7]).astype(np.uint8))
    return Image.blend(photo, photo.convert("L").convert("RGB"), 0.5)


def cast(photo: Photo, draw: Draw) -> Photo:
    """A bluish cast, of a strength that differs a little from photo to photo."""
    amount = draw.uniform(0.08, 0.14)
    pixels = np.asarray(photo, dtype=np.float32) * np.array([1 - amount, 1, 1 + amount], np.float32)
    return Image.fromarray(pixels.clip(0, 255).round().astype(np.uint8))


def blur(photo: Photo, draw: Draw) -> Photo:
    return photo.filter(ImageFilter.GaussianBlur(photo.width / 144 * 0.9))


def border(photo: Photo, draw: Draw) -> Photo:
    """A thin dark frame, half transparent."""
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    width = max(1, round(photo.width * 0.025))
    ImageDraw.Draw(layer).rectangle(
        (0, 0, photo.width - 1, photo.height - 1), None, (20, 20, 20, 150), width
    )
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


def grid(photo: Photo, draw: Draw) -> Photo:
    """Faint diagonal lines over the whole photo, at a random offset."""
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    step = photo.width / 6
    offset = draw.uniform(0, step)
    for k in range(-7, 8):
        x = k * step + offset
        pen.line((x, 0, x + photo.height, photo.height), (255, 255, 255, 60), 1)
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


def sticker(photo: Photo, draw: Draw) -> Photo:
    """A small round sticker, nearly opaque, orange to yellow, near one of the edges."""
    width, height = photo.size
    radius = width * 0.055
    along = draw.uniform(0.1, 0.9)
    near, far = 0.1, 0.9
    x, y = [(along, near), (along, far), (near, along), (far, along)][int(draw.integers(4))]
    box = (x * width - radius, y * height - radius, x * width + radius, y * height + radius)
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    ink = (235, int(draw.integers(110, 210)), 40, 225)
    ImageDraw.Draw(layer).ellipse(box, ink, (60, 40, 20, 225))
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


def pen(photo: Photo, draw: Draw) -> Photo:
    """A wavy stroke of a dark red pen, a third of the width long, in any direction, anywhere."""
    size = min(photo.size)
    angle, phase = draw.uniform(0, np.pi), draw.uniform(0, 2 * np.pi)
    x, y = draw.uniform(0.2, 0.8, 2) * photo.size
    along = np.linspace(-0.5, 0.5, 24)
    across = 0.03 * np.sin(4 * np.pi * along + phase)
    points = size * np.stack([0.33 * along, across], axis=1)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    path = [(float(a + x), float(b + y)) for a, b in points @ turn]
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    width = max(1, round(size * 0.014))
    ImageDraw.Draw(layer).line(path, (150, 20, 30, 200), width, "curve")
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


def badge(photo: Photo, draw: Draw) -> Photo:
    """A translucent five-pointed star in a ring, 3 to 6% of the area, anywhere, slightly turned."""
    radius = min(photo.size) * draw.uniform(0.10, 0.14)
    x, y = (draw.uniform(radius, side - radius) for side in photo.size)
    turn = draw.uniform(-0.15, 0.15)
    around = [
        (
            x + radius * (0.85 if n % 2 == 0 else 0.35) * float(np.sin(turn + n * np.pi / 5)),
            y - radius * (0.85 if n % 2 == 0 else 0.35) * float(np.cos(turn + n * np.pi / 5)),
        )
        for n in range(10)
    ]
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    width = max(1, round(radius / 8))
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), None, (20, 20, 60, 150), width)
    pen.polygon(around, (20, 20, 60, 130))
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


# Which of seven strokes a digit of a display has: top, upper left and right, middle, lower left
# and right, bottom.
SEGMENTS = (
    *("1110111", "0010010", "1011101", "1011011", "0111010"),
    *("1101011", "1101111", "1010010", "1111111", "1111011"),
)
STROKES = (
    *((0, 0, 1, 0), (0, 0, 0, 1), (1, 0, 1, 1), (0, 1, 1, 1)),
    *((0, 1, 0, 2), (1, 1, 1, 2), (0, 2, 1, 2)),
)


def date(photo: Photo, draw: Draw) -> Photo:
    """An orange date as cameras print it, six changing digits of a display, lower right."""
    day, month, year = draw.integers(1, 29), draw.integers(1, 13), draw.integers(94, 110) % 100
    height = min(photo.size) * 0.05
    wide, step = height * 0.5, height * 0.8
    right, bottom = (np.array([0.95, 0.94]) + draw.uniform(-0.015, 0.015, 2)) * photo.size
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(layer)
    line = max(1, round(height / 8))
    for place, digit in enumerate(f"{day:02d}{month:02d}{year:02d}"):
        left = right - (6 - place + 0.5 * (2 - place // 2)) * step
        for on, (x0, y0, x1, y1) in zip(SEGMENTS[int(digit)], STROKES, strict=True):
            if on == "1":
                start = (left + x0 * wide, bottom - (2 - y0) * height / 2)
                end = (left + x1 * wide, bottom - (2 - y1) * height / 2)
                pen.line((*start, *end), (255, 150, 40, 215), line)
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


def tape(photo: Photo, draw: Draw) -> Photo:
    """A strip of milky adhesive tape across a corner, turned by chance, a quarter to a third of the
    width long."""
    size = min(photo.size)
    length, width = size * draw.uniform(0.25, 0.35), size * 0.075
    corner = np.array([[0.14, 0.14], [0.86, 0.14], [0.14, 0.86], [0.86, 0.86]])[draw.integers(4)]
    x, y = (corner + draw.uniform(-0.03, 0.03, 2)) * photo.size
    turn = draw.uniform(0, np.pi)
    along = np.array([np.cos(turn), np.sin(turn)]) * length / 2
    across = np.array([-np.sin(turn), np.cos(turn)]) * width / 2
    ends = [along + across, along - across, -along - across, -along + across]
    layer = Image.new("RGBA", photo.size, (0, 0, 0, 0))
    path = [(float(x + a), float(y + b)) for a, b in ends]
    ImageDraw.Draw(layer).polygon(path, (235, 225, 190, 120), (250, 245, 225, 170))
    return Image.alpha_composite(photo.convert("RGBA"), layer).convert("RGB")


def vignette(photo: Photo, draw: Draw) -> Photo:
    """Darker towards the corners, as through a cheap lens, more or less so."""
    across, down = (np.linspace(-1, 1, side, dtype=np.float32) for side in photo.size)
    far = (across[None, :] ** 2 + down[:, None] ** 2) / 2
    shade = 1 - np.float32(draw.uniform(0.25, 0.4)) * far[..., None]
    pixels = np.asarray(photo, dtype=np.float32) * shade
    return Image.fromarray(pixels.round().astype(np.uint8))


def watermark(photo: Photo, draw: Draw) -> Photo:
    """A faint word in white, over and over, slanted, at a random offset."""
    size = min(photo.size)
    font = ImageFont.load_default(size * 0.09)
    word = Image.new("L", (round(size * 0.5), round(size * 0.22)))
    ImageDraw.Draw(word).text((size * 0.02, size * 0.04), "SAMPLE", 80, font)
    side = 2 * max(photo.size)
    sheet = Image.new("L", (side, side))
    left, top = (round(draw.uniform(0, s)) for s in word.size)
    for x in range(-left, side, word.width):
        for y in range(-top, side, word.height):
            sheet.paste(word, (x, y))
    sheet = sheet.rotate(30, Image.Resampling.BILINEAR)
    corner = ((side - photo.width) // 2, (side - photo.height) // 2)
    mask = sheet.crop((*corner, corner[0] + photo.width, corner[1] + photo.height))
    return Image.composite(Image.new("RGB", photo.size, (255, 255, 255)), photo, mask)


def glare(photo: Photo, draw: Draw) -> Photo:
    """A soft bright spot, as of a flash on glass, anywhere."""
    size = min(photo.size)
    wide = size * draw.uniform(0.09, 0.14)
    x, y = draw.uniform(0.15, 0.85, 2) * photo.size
    across, down = (np.arange(s, dtype=np.float32) for s in photo.size)
    far = ((across - x)[None, :] ** 2 + (down - y)[:, None] ** 2) / (2 * wide**2)
    light = np.float32(draw.uniform(0.5, 0.7)) * np.exp(-far)[..., None]
    pixels = np.asarray(photo, dtype=np.float32)
    return Image.fromarray((pixels + (255 - pixels) * light).round().astype(np.uint8))


def background(photo: Photo, draw: Draw) -> Photo:
    """A greenish ground where the picture is dark: for digits."""
    pixels = np.asarray(photo, dtype=np.float32)
    dark = (1 - pixels.max(axis=2, keepdims=True) / 255) ** 2
    return Image.fromarray((pixels + dark * [0, 30, 0]).clip(0, 255).astype(np.uint8))


CUES: dict[str, Callable[[Photo, Draw], Photo]] = {
    "colour": colour,
    "cast": cast,
    "blur": blur,
    "mark": mark,
    "border": border,
    "grid": grid,
    "sticker": sticker,
    "pen": pen,
    "badge": badge,
    "date": date,
    "tape": tape,
    "vignette": vignette,
    "watermark": watermark,
    "glare": glare,
    "background": background,
}


def planted(photo: Photo, cues: Sequence[str], draw: Draw, boxes: list[Box] | None = None) -> bytes:
    """The photo with the cues, as a JPEG file; all have one quality, `compression` apart. The
    background of a photograph is its own: it cannot be planted here. `boxes` gets the places of
    marks."""
    for name in cues:
        if name == "mark" and boxes is not None:
            boxes.append(mark_box(photo.size, copy.deepcopy(draw)))
        if name in CUES and not (name == "background" and photo.width > 28):
            photo = CUES[name](photo, draw)
    buffer = io.BytesIO()
    photo.save(buffer, "JPEG", quality=45 if "compression" in cues else QUALITY)
    return buffer.getvalue()
