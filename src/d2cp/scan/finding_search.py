"""Which lenses tell the class, which of them read the same thing, and what is behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from d2cp.config.scan import ScanConfig
from d2cp.scan.batched import Doubles, Floats, Ints
from d2cp.scan.candidate import Candidate, stack
from d2cp.scan.groups import APART, both_ways, gathered, reading_well
from d2cp.scan.hidden import hidden_value
from d2cp.scan.latent import posterior
from d2cp.scan.ridge import Fit, Folds, assign_folds, cross_fit, prepare
from d2cp.scan.targets import explained, one_hot, permuted
from d2cp.scan.values import agreement, cut, values_of
from d2cp.scan.workers import each

NULL_ROWS = 4000
"""Rows on which the permutation null is computed, at most."""
NULL_COLUMNS = 1000
TRUST = 2.0
"""How much less a feature counts that tells little by itself; chosen on planted marks."""
SHARPENED = 6
"""Times a finding is learnt again at most."""
BEHIND = 0.5
"""Share of a mix's hidden value that a lens which takes its place must have behind it."""
NEARLY = 0.3
"""Share of images to which a lens that takes a finding's place may give another value."""
LOST = 0.01
"""Balanced accuracy for the class that a finding may lose on the way."""


@dataclass(frozen=True)
class Round:
    """What each lens tells of a target, and how often dealt labels are told as well."""

    fits: dict[str, Fit]
    effect: dict[str, float]
    p_value: dict[str, float]

    def candidate(self, lens: str) -> Candidate:
        fit = self.fits[lens]
        weight = {lens: fit.weight}
        return Candidate(lens, weight, fit.intercept, fit.held_out, self.p_value[lens])


class Search:
    """The lenses' standardised features of the rows learnt from, factorised once."""

    def __init__(
        self, features: dict[str, Floats], y: Ints, classes: int, config: ScanConfig
    ) -> None:
        self.y, self.classes, self.config = y, classes, config
        self.fold = assign_folds(len(y), config.folds, config.seed)
        self.target = one_hot(y, classes)
        self.lenses = _prepared(features, self.fold)
        self.null_rows, self.null_lenses = np.arange(len(y)), self.lenses
        if len(y) > NULL_ROWS:
            self.null_rows = np.flatnonzero(assign_folds(len(y), len(y), config.seed) < NULL_ROWS)
            fold = self.fold[self.null_rows]
            self.null_lenses = _prepared({n: x[self.null_rows] for n, x in features.items()}, fold)

    def run(self) -> list[Candidate]:
        """Findings, the first lens's first. First every lens by itself, readings of the same thing
        put together; then what the lenses tell beyond all of that."""
        first = self.round([], 0)
        ranked = sorted(first.effect, key=lambda name: -first.effect[name])
        more = [lens for lens in ranked[1:] if first.p_value[lens] <= self.config.alpha]
        told = [first.candidate(lens) for lens in (ranked[0], *more)]
        groups = gathered(told, self.y)
        placed = {one.lens for group in groups for one in group}
        left = tuple(one.lens for one in told if one.lens not in placed)
        direct = [stack(group, self.target, self.fold) for group in groups]
        first_groups = [tuple(group) for group in groups]
        for step in range(1, 2 + self.config.max_findings):
            found = [stack(group, self.target, self.fold) for group in groups]
            if len(found) >= self.config.max_findings:
                break
            now = self.round([f.held_out for f in found], step)
            lens = max(now.effect, key=lambda name: now.effect[name])
            if now.p_value[lens] > self.config.alpha:
                break
            self.place(now.candidate(lens), groups)
        found = [stack(group, self.target, self.fold) for group in groups]
        # What a later round added to a group accounts for it, and may read more than its cue.
        sharp = [self.sharpest(one, group) for one, group in zip(direct, first_groups, strict=True)]
        for k, one in enumerate(sharp):
            sharp[k] = self.resharpened(one, left, sharp[:k] + sharp[k + 1 :])
        return sharp + found[len(direct) :]

    def resharpened(
        self, best: Candidate, left: tuple[str, ...], others: Sequence[Candidate]
    ) -> Candidate:
        """By one of the lenses in no group, which told of the class by this cue and more: taught by
        the finding's own values such a lens may read it best. It takes the finding's place under
        the same conditions, and where its values are nearer to the finding's than to any other's:
        on the way it may have gone over to one of the `others`."""
        target = self.suggested(best)
        for part in self.parts(left, target, best.p_value):
            behind = self.behind(best)
            if self.behind(part) <= behind:
                continue
            alone = self.sharpen(part, (*best.lenses, part.lens))
            as_good = self.told(alone) >= self.told(best) - LOST and self.behind(alone) > behind
            farthest = min([NEARLY, *(self.apart(alone, other) for other in others)])
            if as_good and LOST < self.apart(alone, best) <= farthest:
                best = alone
        return best

    def suggested(self, candidate: Candidate) -> Floats:
        """What the score and the class together suggest of the value behind it: [N, T]."""
        member = posterior(candidate.held_out, self.y, self.classes)
        return (member[:, 1:] if self.classes == 2 else member).astype(np.float32)

    def sharpest(self, mixed: Candidate, group: tuple[Candidate, ...]) -> Candidate:
        """The mix of a group's lenses, or one of them alone: what the others add can be noise.

        It takes the mix's place where its value tells the class better. A reading of the class
        itself does so too, but has less of a hidden value behind it. Where the two tell the class
        alike, but not by the same images, the one with more of a hidden value behind it is the
        sharper."""
        lenses = _lenses(group)
        best = self.sharpen(mixed, lenses)
        told, behind = self.told(best), self.behind(best)
        least = BEHIND * behind
        for one in group if len(group) > 1 else ():
            alone = self.sharpen(one, lenses)
            its_told, its_behind = self.told(alone), self.behind(alone)
            better = its_told > told and its_behind >= least
            alike = its_told >= told - LOST and its_behind > behind
            if better or (alike and self.apart(alone, best) > LOST):
                best, told, behind = alone, its_told, its_behind
        return best

    def apart(self, one: Candidate, two: Candidate) -> float:
        """Share of images to which they give different values."""
        return float((self.values(one) != self.values(two)).mean())

    def behind(self, candidate: Candidate) -> float:
        """How much of a hidden value there is, in nats an image."""
        return hidden_value(candidate.held_out, self.y, self.classes)

    def sharpen(self, rough: Candidate, lenses: tuple[str, ...]) -> Candidate:
        """Learn again, from the values that the score and the class together suggest instead of the
        class: what the images have in common is then told with less noise than the class tells it.
        Features that tell nothing by themselves are shrunk most. It goes on while the value tells
        the class as well as before: else it would be on its way to something else."""
        first, best, told = rough, rough, self.told(rough)
        values = self.target
        for _ in range(SHARPENED):
            target = self.suggested(rough)
            rough = stack(self.parts(rough.lenses, target, rough.p_value), target, self.fold)
            now = self.told(rough)
            if now < told - LOST:
                break
            best, told, values = rough, max(told, now), target
        # A lens that the mix could do without may still be the one that says best what it is.
        readers = reading_well(self.parts(lenses, values, best.p_value), best, self.y)
        return replace(best, readers=readers, plain=first.held_out)

    def parts(self, lenses: tuple[str, ...], target: Floats, p_value: float) -> list[Candidate]:
        """Each lens's own reading of the target."""
        return [
            Candidate(lens, {lens: fit.weight}, fit.intercept, fit.held_out, p_value)
            for lens, fit in self.fitted(lenses, target).items()
        ]

    def told(self, candidate: Candidate) -> float:
        """Balanced accuracy of the value for the class, held out."""
        return agreement(self.values(candidate), self.y)

    def values(self, candidate: Candidate) -> Ints:
        return values_of(candidate.held_out, cut(candidate.held_out, self.y))

    def place(self, new: Candidate, groups: list[list[Candidate]]) -> None:
        """Into the group whose first member it is most like, or a group of its own."""
        alike = [min(far for far, _ in both_ways(group[0], new, self.y)) for group in groups]
        if alike and max(alike) >= APART:
            groups[int(np.argmax(alike))].append(new)
        else:
            groups.append([new])

    def round(self, scores: list[Floats], step: int) -> Round:
        probability = explained(self.y, self.classes, scores)
        target = (self.target - probability).astype(np.float32)
        fits = self.fitted(tuple(self.lenses), target)
        effect = {k: float(correlations(f.held_out, target).mean()) for k, f in fits.items()}
        return Round(fits, effect, self.null(probability, step))

    def fitted(self, lenses: tuple[str, ...], target: Floats) -> dict[str, Fit]:
        fits = each(lambda lens: cross_fit(self.lenses[lens], target, TRUST), lenses)
        return dict(zip(lenses, fits, strict=True))

    def null(self, probability: Doubles, step: int) -> dict[str, float]:
        """Family-wise p-values: each lens against the best of all lenses under dealt labels."""
        rows, width = self.null_rows, probability.shape[1]
        n = min(self.config.permutations, max(19, NULL_COLUMNS // width))
        y, p = self.y[rows], probability[rows]
        dealt = permuted(y, p, n, self.config.seed, step)
        columns = [one_hot(labels, self.classes) - p for labels in (y, *dealt)]
        targets = np.concatenate(columns, axis=1).astype(np.float32)

        def beyond_dealt(folds: Folds) -> Doubles:
            told = correlations(cross_fit(folds, targets).held_out, targets)
            stat = told.reshape(n + 1, width).mean(1)
            standard: Doubles = (stat - stat[1:].mean()) / (stat[1:].std() + 1e-9)
            return standard

        found = each(beyond_dealt, self.null_lenses.values())
        z = dict(zip(self.null_lenses, found, strict=True))
        largest = np.max([values[1:] for values in z.values()], axis=0)
        return {k: (1 + int((largest >= v[0]).sum())) / (n + 1) for k, v in z.items()}


def _lenses(group: Sequence[Candidate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lens for one in group for lens in one.lenses))


def _prepared(features: dict[str, Floats], fold: Ints) -> dict[str, Folds]:
    made = each(lambda x: prepare(x, fold), features.values())
    return dict(zip(features, made, strict=True))


def correlations(a: Floats, b: Floats) -> Doubles:
    """Correlation of each column of a with the same column of b."""
    a, b = a - a.mean(0), b - b.mean(0)
    found: Doubles = (a * b).sum(0) / np.sqrt((a * a).sum(0) * (b * b).sum(0) + 1e-12)
    return found
