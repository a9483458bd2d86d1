"""The words whose text goes with a finding's values, as findings.json keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from d2cp.core.records import ValueWords, WordRecord, WordsRecord
from d2cp.core.rng import numpy_generator
from d2cp.scan.batched import Doubles, Ints
from d2cp.scan.finding import Finding
from d2cp.scan.word_scores import balanced_rows, chance, within_classes, word_scores

IMAGES = 240
"""Training images of a finding that are embedded at most."""
DEALS = 99
"""So that a finding without any has a word beyond chance once in a hundred times."""
KEPT = 5
"""Words of a value."""
NAMED = 6
"""Values that the sentence names at most."""
SETTINGS = (IMAGES, DEALS, KEPT)
STAGE = "scan/words"


def rows_for(finding: Finding, y: Ints, train: Ints, seed: int) -> Ints:
    """Training images, of every class and value as many; none where no class has two values."""
    generator = numpy_generator(seed, f"{STAGE}/images", finding.rank)
    return train[balanced_rows(y[train], finding.value[train], IMAGES, generator)]


def words_of(
    finding: Finding, texts: Sequence[str], cosines: Doubles, y: Ints, value: Ints, seed: int
) -> WordsRecord:
    """`cosines` [n, words] of the images of `rows_for`, with their classes and values."""
    if not len(y):
        sentence = "No class has images of two values, so that words could not be compared."
        return {"images": 0, "values": [], "sentence": sentence}
    standard = within_classes(cosines, y)
    generator = numpy_generator(seed, f"{STAGE}/deals", finding.rank)
    bounds = chance(standard, y, value, finding.values, DEALS, generator)
    scores = word_scores(standard, y, value, finding.values)
    values: list[ValueWords] = []
    for v in np.unique(value).tolist():
        own, bound = scores[v], float(bounds[v])
        best = np.argsort(-own, kind="stable")[:KEPT].tolist()
        words: list[WordRecord] = [
            {
                "word": texts[w],
                "score": round(float(own[w]), 4),
                "beyond_chance": bool(own[w] > bound),
            }
            for w in best
        ]
        named = finding.value_names[v]
        values.append({"value": named, "chance": round(bound, 4), "words": words})
    return {"images": len(y), "values": values, "sentence": _sentence(values)}


def _sentence(values: Sequence[ValueWords]) -> str:
    """Only words beyond chance are named, and of many values those that are furthest beyond it."""
    passing = [v for v in values if any(w["beyond_chance"] for w in v["words"])]
    if not passing:
        return "No word of the file goes with this finding: none is beyond chance."
    furthest = sorted(passing, key=lambda v: v["chance"] - v["words"][0]["score"])[:NAMED]
    sides = []
    for v in (v for v in passing if v in furthest):
        named = [f"{w['word']} ({w['score']:.2f})" for w in v["words"] if w["beyond_chance"]]
        sides.append(f"with “{v['value']}” {', '.join(named)} (chance reaches {v['chance']:.2f})")
    more = len(passing) - len(furthest)
    rest = f"; further values with words: {more}" if more else ""
    return f"Words that go {'; '.join(sides)}{rest}."
