"""Several findings: told apart, put together, and no more than chance."""

import numpy as np
import pytest

from d2cp.config.scan import ScanConfig
from d2cp.scan.candidate import Candidate
from d2cp.scan.finding_search import Search
from d2cp.scan.groups import reading_well
from d2cp.scan.likeness import follows
from d2cp.scan.targets import explained, permuted


def planted(n=600, agree=0.9, seed=0, cues=2, classes=2):
    """Lenses that each see one cue among noise; cues agree with the class independently."""
    draw = np.random.default_rng(seed)
    y = draw.integers(classes, size=n)
    seen = {}
    truth = []
    for k in range(cues):
        other = (y + draw.integers(1, classes, size=n)) % classes
        cue = np.where(draw.random(n) < agree, y, other)
        truth.append(cue)
        for half in "ab":
            x = draw.normal(size=(n, 12))
            x[:, :classes] += 2.5 * np.eye(classes)[cue]
            seen[f"cue {k}{half}"] = x.astype(np.float32)
    seen["blind"] = draw.normal(size=(n, 12)).astype(np.float32)
    return seen, y, truth


@pytest.mark.parametrize("agree", [0.8, 0.95, 0.99])
def test_two_cues_are_two_findings_each_seen_by_its_lenses(agree):
    seen, y, _ = planted(agree=agree, n=1500)
    found = Search(seen, y, 2, ScanConfig(permutations=39, alpha=0.05)).run()
    groups = [set(f.lenses) for f in found[:2]]
    assert {"cue 0a", "cue 0b"} in groups and {"cue 1a", "cue 1b"} in groups
    assert not any("blind" in f.lenses for f in found)


def test_many_classes():
    seen, y, truth = planted(classes=5, cues=1, n=1500)
    found = Search(seen, y, 5, ScanConfig(permutations=39, alpha=0.05)).run()
    value = found[0].held_out.argmax(axis=1)
    assert np.mean(value == truth[0]) > 0.9 and found[0].p_value <= 0.05


def test_labels_at_random_are_not_more_than_chance():
    alarms = 0
    for seed in range(20):
        seen, _, _ = planted(n=200, seed=seed)
        y = np.random.default_rng(100 + seed).integers(2, size=200)
        found = Search(seen, y, 2, ScanConfig(permutations=39, seed=seed)).run()
        alarms += found[0].p_value <= 0.05
    assert alarms <= 4  # 20 draws at 5%: more than 4 has a chance of 0.3%


def test_likeness_of_one_thing_read_twice_and_of_two_things():
    draw = np.random.default_rng(0)
    y = np.arange(4000) % 2
    cues = [np.where(draw.random(4000) < 0.97, y, 1 - y) for _ in range(2)]

    def reading(cue):
        return (cue * 3 + draw.normal(size=4000))[:, None].astype(np.float32) - 1.5

    assert follows(reading(cues[0]), reading(cues[0]), y)[0] > 0.7
    assert follows(reading(cues[0]), reading(cues[1]), y)[0] < 0.2


def test_a_lens_that_reads_the_cue_alone_leads_one_that_reads_the_object_too():
    draw = np.random.default_rng(0)
    y = draw.integers(2, size=3000)
    cue = np.where(draw.random(3000) < 0.8, y, 1 - y)
    seen = {
        "whole": np.stack([3 * cue, 2 * y], axis=1) + draw.normal(size=(3000, 2)),
        "colour": 4 * cue[:, None] + draw.normal(size=(3000, 2)),
        "tint": 4 * cue[:, None] + draw.normal(size=(3000, 2)),
    }
    features = {name: x.astype(np.float32) for name, x in seen.items()}
    config = ScanConfig(permutations=39, alpha=0.05)
    search = Search(features, y, 2, config)
    first = search.round([], 0)
    assert max(first.effect, key=lambda name: first.effect[name]) == "whole"
    found = search.run()
    assert set(found[0].lenses) == {"colour", "tint"} and found[1].lens == "whole"
    assert np.mean((found[0].held_out[:, 0] > 0) == cue) > 0.95


def test_dealt_labels_keep_what_earlier_findings_explain():
    draw = np.random.default_rng(0)
    y = draw.integers(2, size=500)
    score = (y * 2 + draw.normal(size=500)).astype(np.float32)[:, None]
    probability = explained(y, 2, [score])
    assert abs(probability.mean() - y.mean()) < 0.02
    dealt = permuted(y, probability, 30, seed=0, step=0)
    assert (dealt.sum(axis=1) == y.sum()).all()
    kept = np.corrcoef(np.concatenate([score[:, 0]] * 30), dealt.ravel())[0, 1]
    assert kept > 0.5 and not (dealt == y).all()


def test_lenses_that_read_a_finding_as_well_as_any_the_plainest_first():
    draw = np.random.default_rng(0)
    y = np.arange(600) % 2
    cue = np.where(draw.random(600) < 0.9, y, 1 - y)

    def part(lens, noise):
        scores = (cue + draw.normal(0, noise, 600)).astype(np.float32)[:, None]
        return Candidate(lens, {}, np.zeros((5, 1), np.float32), scores, 0.005)

    sharp, blunt = part("local pattern", 0.01), part("colour", 0.8)
    three = [sharp, part("colour", 0.01), part("layout", 0.01)]
    assert reading_well(three, sharp, y) == ("colour", "layout", "local pattern")
    assert reading_well([sharp, blunt], sharp, y) == ("local pattern",)
    own = [sharp, part("column site", 0.01)]
    assert reading_well(own, sharp, y) == ("column site", "local pattern")


def test_a_lens_alone_takes_the_place_of_a_mix_that_tells_less():
    """A cue on 80% of a class: one lens reads it well, another reads it and much noise. The one
    alone is kept; a lens that reads the class itself, without a hidden value, is not."""
    draw = np.random.default_rng(0)
    y = np.repeat([0, 1], 400)
    cue = np.where(draw.random(800) < 0.8, y, 1 - y)
    sharp = (2.0 * cue[:, None] - 1) + 0.5 * draw.normal(size=(800, 3))
    blunt = (2.0 * cue[:, None] - 1) + 6 * draw.normal(size=(800, 3))
    of_class = (2.0 * y[:, None] - 1) + 0.9 * draw.normal(size=(800, 1))
    features = {"tint": sharp, "texture": blunt, "layout": of_class}
    standard = {k: ((x - x.mean(0)) / x.std(0)).astype(np.float32) for k, x in features.items()}
    search = Search(standard, y, 2, ScanConfig(permutations=19))
    first = search.round([], 0)
    tint, texture, layout = (first.candidate(lens) for lens in features)
    assert search.sharpest(texture, (texture, tint)).lenses == ("tint",)
    assert search.told(layout) > search.told(tint)
    assert "layout" not in search.sharpest(tint, (tint, layout)).lenses
    assert search.sharpest(tint, (tint,)).lenses == ("tint",)


@pytest.mark.parametrize(
    ("told", "behind", "apart", "kept"),
    [
        ((0.760, 0.755), (0.03, 0.09), 0.1, "tint"),  # alike, and more of a value behind it
        ((0.760, 0.755), (0.03, 0.09), 0.005, "texture"),  # the same images: nothing to gain
        ((0.760, 0.755), (0.09, 0.03), 0.1, "texture"),  # alike, and less of a value behind it
        ((0.760, 0.740), (0.03, 0.09), 0.1, "texture"),  # tells the class clearly less
        ((0.760, 0.765), (0.09, 0.05), 0.005, "tint"),  # tells it better, with half of the value
        ((0.760, 0.800), (0.09, 0.04), 0.1, "texture"),  # a reading of the class itself
    ],
)
def test_of_two_readings_alike_the_one_with_more_of_a_value_behind_it(
    monkeypatch, told, behind, apart, kept
):
    seen, y, _ = planted(n=100)
    search = Search(seen, y, 2, ScanConfig(permutations=19))
    empty = np.zeros((len(y), 1), np.float32)
    texture, tint = (Candidate(n, {n: empty}, empty, empty, 0.01) for n in ("texture", "tint"))
    place = ["texture", "tint"].index
    monkeypatch.setattr(search, "sharpen", lambda one, lenses: one)
    monkeypatch.setattr(search, "told", lambda one: told[place(one.lens)])
    monkeypatch.setattr(search, "behind", lambda one: behind[place(one.lens)])
    monkeypatch.setattr(search, "apart", lambda one, two: apart)
    assert search.sharpest(texture, (texture, tint)).lens == kept


def test_a_lens_that_reads_the_cue_and_more_is_taught_by_the_findings_own_values():
    """One lens reads a cue on 80% of a class badly. Another one holds the cue clearly, and the
    object: told the class it reads both, told the finding's values it reads the cue."""
    draw = np.random.default_rng(3)
    y = np.repeat([0, 1], 600)
    cue = np.where(draw.random(1200) < 0.8, y, 1 - y)
    blurred = (2.0 * cue[:, None] - 1) + 1.6 * draw.normal(size=(1200, 2))
    clear = (2.0 * cue - 1) + 0.35 * draw.normal(size=1200)
    thing = (2.0 * y - 1) + 1.2 * draw.normal(size=1200)
    features = {"colour": blurred, "coloured detail": np.stack([clear, thing], axis=1)}
    features["layout"] = (2.0 * y[:, None] - 1) + 0.9 * draw.normal(size=(1200, 1))
    standard = {k: ((x - x.mean(0)) / x.std(0)).astype(np.float32) for k, x in features.items()}
    search = Search(standard, y, 2, ScanConfig(permutations=19))
    rough = search.sharpest(*(lambda one: (one, (one,)))(search.round([], 0).candidate("colour")))
    better = search.resharpened(rough, ("coloured detail", "layout"), [])
    assert better.lenses == ("coloured detail",)
    wrong = [float((search.values(one) != cue).mean()) for one in (rough, better)]
    assert wrong[1] < 0.05 < wrong[0]
    assert search.resharpened(rough, (), []) is rough
    lenses = ("colour", "coloured detail", "layout")
    assert search.resharpened(better, lenses[::2], []) is better  # less of a value behind it
    # Where another finding has these values already, it is not this one that is read better.
    assert search.resharpened(rough, lenses, [better]) is rough
