from __future__ import annotations

import numpy as np

from d2cp.data.packed_digests import (
    DigestSet,
    RowDigests,
    content_of,
    digest_bytes,
    packed,
    places_of,
)
from d2cp.data.texts import BLOCK, Texts

# Digests whose first or last bytes are zeros, which numpy drops when it hands out an item.
DIGESTS = [digest_bytes(str(i).encode()) for i in range(600)]
DIGESTS += [DIGESTS[i][:8] + bytes(8) for i in range(40)] + [bytes(8) + DIGESTS[5][:8], bytes(16)]


def row_digests(digests: list[bytes | None]) -> RowDigests:
    made = RowDigests.of(len(digests))
    for row, digest in enumerate(digests):
        if digest is not None:
            made[row] = digest
    return made


def test_rows_give_back_what_they_were_given() -> None:
    given = [*DIGESTS, None]
    made = row_digests(given)
    assert [made[row] for row in range(len(made))] == given


def test_content_is_that_of_the_sorted_digests() -> None:
    literal = digest_bytes(b"".join(sorted(DIGESTS))).hex()
    assert content_of(packed(b"".join(DIGESTS + DIGESTS[:9]))) == literal


def test_places() -> None:
    held = packed(b"".join(DIGESTS[100:]))
    places = places_of(packed(b"".join(DIGESTS)), held)
    assert places.tolist() == [-1] * 100 + list(range(len(DIGESTS) - 100))
    assert places_of(held[:2], held[:0]).tolist() == [-1, -1]


def test_first_rows_and_repetitions_against_a_dictionary() -> None:
    draw = np.random.default_rng(0)
    given = [None if i == 7 else DIGESTS[i] for i in draw.integers(0, 60, 200)]
    rows_of: dict[bytes, list[int]] = {}
    for row, digest in enumerate(given):
        if digest is not None:
            rows_of.setdefault(digest, []).append(row)
    made = row_digests(given)
    assert made.first_rows().tolist() == [rows[0] for rows in rows_of.values()]
    assert made.repeated() == [rows for rows in rows_of.values() if len(rows) > 1]
    assert RowDigests.of(3).repeated() == [] and RowDigests.of(3).first_rows().tolist() == []


def test_a_set_keeps_the_order_and_each_once() -> None:
    held = DigestSet()
    for digest in (*DIGESTS, *DIGESTS[::3]):
        held.add(digest)
    assert len(held) == len(DIGESTS) and held.packed().tobytes() == b"".join(DIGESTS)
    assert all(digest in held for digest in DIGESTS) and digest_bytes(b"other") not in held


def test_texts_are_a_sequence() -> None:
    given = [str(i) * (i % 4) for i in range(2 * BLOCK + 5)]
    texts = Texts(given)
    assert list(texts) == given and len(texts) == len(given) and texts[3:6] == given[3:6]
    assert [texts[i] for i in (0, BLOCK - 1, BLOCK, -1)] == [
        given[i] for i in (0, BLOCK - 1, BLOCK, -1)
    ]
    assert list(Texts([""] * BLOCK)) == [""] * BLOCK and not Texts()
