"""Settings of the mining stage (CBCM). Every detail the paper leaves open is a field here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from d2cp.errors import ConfigError

Score = Literal["partial_logit", "signed_scalars", "clusters"]
Threshold = Literal["youden", "midpoint", "zero", "otsu", "gmm"]


@dataclass(frozen=True, kw_only=True)
class MineConfig:
    """A run chooses L2, M and the cut from labels alone. The defaults of the rules that do so were
    settled on development sets whose attributes were known, and compared there against them;
    `MineConfig.paper()` is the method as published."""

    centre: bool = True
    """Subtract each token's train mean: r is not shift-invariant, a constant token acts as a bias
    and would score high in every class."""
    balanced: bool = True
    """Give every class the same total weight in A's loss."""
    l2: float | None = None
    """Strength of A's L2, relative to the mean squared norm of the tokens. None: chosen on
    held-out folds."""
    l2_grid: tuple[float, ...] = (0.1, 0.02, 5e-3, 1e-3, 2e-4, 5e-5, 1e-5, 2e-6)
    """Candidates; the strongest that keeps `signal_share` of the best signal is used."""
    epochs: int | None = None
    """Train A by this many passes of plain mini-batch SGD instead of to convergence."""
    learning_rate: float = 0.1  # of that SGD
    batch_size: int = 128  # of that SGD
    folds: int = 5
    """Folds of the cross-fit: no image is scored by a classifier that saw its label. 0: in-sample,
    as the paper writes it."""
    flip_rounds: int = 1
    """Rounds in which confident held-out predictions replace the labels A learns from. 0: off."""
    rho: float = 0.2
    """Share of each class kept as its high-confidence subset."""
    top_m: int | None = None
    """Concepts kept per class. None: the fewest that carry `signal_share`."""
    signal_share: float = 0.95
    """Share of the held-out signal about the labels that a stronger L2, or fewer concepts, must
    keep."""
    refit: bool = True
    """Train A once more on the tokens of T alone for the score; off: the score uses ΔW."""
    score: Score = "partial_logit"
    """What is cut: A's logit over T, the sum of signed scalars, or clusters of tokens."""
    threshold: Threshold = "youden"
    """`youden`: the cut that separates the classes best, each counted alike. Where the label is a
    noisy copy of the attribute, no cut has a better balanced accuracy for the attribute itself."""
    values: int | None = None
    """Number of values of the pseudo attribute. None: 2 with two classes, else BIC picks it."""
    max_values: int | None = None
    """Largest number BIC may pick. None: the number of classes."""
    exclude: tuple[int, ...] = ()
    """Concepts a person has declared to be the class itself: never mined."""
    selection_rows: int = 3000
    """Rows used to choose L2 and M and for the bootstrap; the last fit uses all."""
    bootstrap: int = 10
    """Resamples behind the stability figures of the verdict."""
    disagreement_warning: float = 0.05
    """Warn when midpoint and mixture thresholds label more than this share differently."""

    def __post_init__(self) -> None:
        _require(0 < self.rho <= 1, f"rho = {self.rho}", "a share in (0, 1]")
        _require(self.l2 is None or self.l2 >= 0, f"l2 = {self.l2}", "a number >= 0, or none")
        _require(len(self.l2_grid) > 0 and min(self.l2_grid) > 0, "l2_grid", "positive numbers")
        _require(self.top_m is None or self.top_m >= 1, f"top_m = {self.top_m}", "at least 1")
        _require(0 < self.signal_share <= 1, f"signal_share = {self.signal_share}", "in (0, 1]")
        _require(self.folds == 0 or self.folds >= 2, f"folds = {self.folds}", "0, or at least 2")
        _require(
            self.folds > 0 or self.l2 is not None or self.epochs is not None,
            "l2 = none with folds = 0",
            "an explicit l2 when nothing is held out",
        )
        _require(self.folds > 0 or self.flip_rounds == 0, "flip_rounds without folds", "folds >= 2")
        _require(self.values is None or self.values >= 2, f"values = {self.values}", "at least 2")
        _require(self.epochs is None or self.epochs >= 1, f"epochs = {self.epochs}", "at least 1")
        _require(self.learning_rate > 0, f"learning_rate = {self.learning_rate}", "above 0")
        for name, low in (("batch_size", 1), ("flip_rounds", 0), ("selection_rows", 1)):
            value = getattr(self, name)
            _require(value >= low, f"{name} = {value}", f"at least {low}")
        share = self.disagreement_warning
        _require(share >= 0, f"disagreement_warning = {share}", "at least 0")
        _require(self.bootstrap >= 2, f"bootstrap = {self.bootstrap}", "at least 2")

    @classmethod
    def paper(cls) -> MineConfig:
        """CBCM as published: raw tokens, one in-sample classifier trained briefly, M by K alone."""
        return cls(
            centre=False,
            balanced=False,
            l2=0.0,
            epochs=5,
            folds=0,
            flip_rounds=0,
            refit=False,
            threshold="midpoint",
        )


def default_top_m(concepts: int) -> int:
    """M where nothing chooses it: 3 at K=20, 2 at K<=10."""
    return 3 if concepts > 10 else min(2, concepts)


def _require(condition: bool, found: str, expected: str) -> None:
    if not condition:
        raise ConfigError(f"mine: {found}", expected=expected, remedy="change it in [mine]")
