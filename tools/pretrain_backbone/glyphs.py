"""The glyph bank: letters of every alphabet in the fonts that ship with matplotlib, no digit.

Each glyph is kept as two distance fields (to its skeleton and to its filled shape); characters
that look alike (Latin A, Greek Alpha, Cyrillic A) share one class so that the label is learnable.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from tools.pretrain_backbone.strokes import UNITS_PER_PIXEL, distance_to, thin

SIDE = 48
BOX = 36
"""A glyph's longer side in the bank, within SIDE pixels."""
LOOK_ALIKE_MEAN = 1.5
LOOK_ALIKE_FARTHEST = 5.0
"""Skeletons closer than this (bank pixels, both ways) are one class."""

_FACES = ("DejaVuSans", "DejaVuSerif", "DejaVuSansMono", "STIXGeneral")
# Computer Modern places its own glyphs at most code points: only its ASCII letters are letters.
_ASCII_FACES = ("cmr10", "cmb10", "cmmi10", "cmss10", "cmti10", "cmtt10")
_NUMBER_WORDS = frozenset(
    [
        "DIGIT",
        "NUMBER",
        "NUMERAL",
        "ONE",
        "TWO",
        "THREE",
        "FOUR",
        "FIVE",
        "SIX",
        "SEVEN",
        "EIGHT",
        "NINE",
        "TEN",
        "TONE",
    ]
)
_ORNATE = ("FRAKTUR", "DOUBLE-STRUCK", "BLACK-LETTER", "LIGATURE")


@dataclass(frozen=True, kw_only=True)
class GlyphBank:
    skeleton: NDArray[np.uint8]  # [N, SIDE, SIDE] distance to the skeleton
    filled: NDArray[np.uint8]  # [N, SIDE, SIDE] distance to the filled shape
    label: NDArray[np.int64]  # [N], sorted
    characters: tuple[str, ...]  # of each glyph
    faces: tuple[str, ...]  # of each glyph
    classes: tuple[str, ...]  # the characters that share each class


def is_letter(character: str) -> bool:
    """A letter that is neither a number, nor a letter with a mark added, nor ornate."""
    if unicodedata.category(character) not in ("Lu", "Ll", "Lo"):
        return False
    if unicodedata.numeric(character, None) is not None:
        return False
    name = unicodedata.name(character, "")
    if not name or _NUMBER_WORDS & set(name.replace("-", " ").split()):
        return False
    if any(word in name for word in _ORNATE):
        return False
    # é, ǻ, ﻼ …: the mark is lost at 28 pixels. Mathematical alphabets are faces of their letter.
    return len(unicodedata.normalize("NFKD", character)) == 1


def base_letter(character: str) -> str:
    return unicodedata.normalize("NFKD", character)


def font_files() -> dict[str, Path]:
    """The faces used, by file stem; those with a full charmap first."""
    import matplotlib

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    names = [
        path.stem
        for path in sorted(folder.glob("*.ttf"))
        if path.stem.startswith(_FACES) and "Display" not in path.stem
    ]
    return {name: folder / f"{name}.ttf" for name in [*names, *_ASCII_FACES]}


def characters_of(path: Path) -> list[str]:
    """The letters that this font really draws."""
    from matplotlib.ft2font import FT2Font

    codes = FT2Font(str(path)).get_charmap()
    letters = [chr(code) for code in sorted(codes) if is_letter(chr(code))]
    return [c for c in letters if c.isascii()] if path.stem in _ASCII_FACES else letters


def render(character: str, font: ImageFont.FreeTypeFont) -> NDArray[np.bool_] | None:
    """The glyph scaled to BOX on its longer side, centred; None when it has no ink."""
    box = font.getbbox(character)
    width, height = int(box[2] - box[0]), int(box[3] - box[1])
    if width < 2 or height < 2:
        return None
    canvas = Image.new("L", (width + 2, height + 2))
    ImageDraw.Draw(canvas).text((1 - box[0], 1 - box[1]), character, fill=255, font=font)
    ink = canvas.getbbox()
    if ink is None:
        return None
    canvas = canvas.crop(ink)
    scale = BOX / max(canvas.size)
    size = (max(1, round(canvas.width * scale)), max(1, round(canvas.height * scale)))
    framed = Image.new("L", (SIDE, SIDE))
    corner = ((SIDE - size[0]) // 2, (SIDE - size[1]) // 2)
    framed.paste(canvas.resize(size, Image.Resampling.BOX), corner)
    bitmap: NDArray[np.bool_] = np.asarray(framed) > 100
    return bitmap if bitmap.any() else None


def look_alike_pairs(skeleton: NDArray[np.bool_], field: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """[N, N]: skeletons that lie on each other, on average and at their farthest point."""
    ink = skeleton.reshape(len(skeleton), -1)
    far = field.reshape(len(field), -1).astype(np.float32) / UNITS_PER_PIXEL
    one_way = (ink.astype(np.float32) @ far.T) / np.maximum(ink.sum(1, keepdims=True), 1)
    near: NDArray[np.bool_] = np.maximum(one_way, one_way.T) < LOOK_ALIKE_MEAN
    for i, j in np.argwhere(np.triu(near, 1)):
        farthest = max(far[j][ink[i]].max(), far[i][ink[j]].max())
        near[i, j] = near[j, i] = farthest < LOOK_ALIKE_FARTHEST
    return near


def merge_look_alikes(
    letters: list[str], faces: list[str], skeleton: NDArray[np.bool_], field: NDArray[np.uint8]
) -> dict[str, str]:
    """Each letter's representative: the first letter it looks like in most faces they share.

    Only representatives are compared with, so that a chain of small differences never joins
    letters that differ."""
    votes: dict[tuple[str, str], int] = {}
    faces_of: dict[str, set[str]] = {}
    for face in sorted(set(faces)):
        rows = [i for i, name in enumerate(faces) if name == face]
        for i in rows:
            faces_of.setdefault(letters[i], set()).add(face)
        for i, j in np.argwhere(look_alike_pairs(skeleton[rows], field[rows])):
            pair = (letters[rows[i]], letters[rows[j]])
            votes[pair] = votes.get(pair, 0) + 1
    like: dict[str, list[str]] = {}
    for (letter, other), count in votes.items():
        if other < letter and 2 * count > len(faces_of[letter] & faces_of[other]):
            like.setdefault(letter, []).append(other)
    chosen: dict[str, str] = {}
    for letter in sorted(faces_of):
        heads = [other for other in sorted(like.get(letter, [])) if chosen[other] == other]
        chosen[letter] = heads[0] if heads else letter
    return chosen


def build_bank(font_size: int = 96) -> GlyphBank:
    """Render every letter of every face once (about half a minute)."""
    bitmaps: list[NDArray[np.bool_]] = []
    drawn: list[tuple[str, str]] = []
    for face, path in font_files().items():
        font = ImageFont.truetype(str(path), font_size)
        for character in characters_of(path):
            bitmap = render(character, font)
            if bitmap is not None:
                bitmaps.append(bitmap)
                drawn.append((character, face))
    ink = np.stack(bitmaps)
    skeleton = thin(ink)
    field = distance_to(skeleton)
    letters = [base_letter(character) for character, _ in drawn]
    # Mathematical alphabets are further faces of a letter: the plain letter alone is compared.
    plain = [i for i, (character, _) in enumerate(drawn) if character == letters[i]]
    representative = merge_look_alikes(
        [letters[i] for i in plain], [drawn[i][1] for i in plain], skeleton[plain], field[plain]
    )
    members: dict[str, set[str]] = {}
    for letter, key in representative.items():
        members.setdefault(key, set()).add(letter)
    keys = sorted(members)
    label = np.array([keys.index(representative[letter]) for letter in letters], dtype=np.int64)
    order = np.argsort(label, kind="stable")
    return GlyphBank(
        skeleton=field[order],
        filled=distance_to(ink)[order],
        label=label[order],
        characters=tuple(drawn[i][0] for i in order),
        faces=tuple(drawn[i][1] for i in order),
        classes=tuple("".join(sorted(members[key])) for key in keys),
    )
