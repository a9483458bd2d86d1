"""Every choice of stage 2. No torch here: the command line reads this file at start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from d2cp.core.optimisers import OPTIMISERS, SCHEDULES, require_known
from d2cp.errors import ConfigError

SelectionRule = Literal["val_true_groups", "val_pseudo_groups", "val_worst_class"]
Tier = Literal["prompts", "features"]
SpuriousFit = Literal["solved", "joint"]
ClassFit = Literal["solved", "trained"]
ReadOut = Literal["balanced", "additive", "average"]
READ_OUTS: tuple[ReadOut, ...] = ("balanced", "additive", "average")
PromptStart = Literal["drawn", "solved"]
PseudoSource = Literal["cbcm", "random", "true"]


@dataclass(frozen=True, kw_only=True)
class DebiasConfig:
    """Defaults: the paper's Waterbirds row where it has a value, else the decision named beside."""

    # what is trained: prompts inside the backbone (the paper's form), or adapters
    # h = x + U relu(V x) on features of the backbone that are computed once
    tier: Tier = "prompts"
    """`prompts` in the backbone (the paper's form), or adapters over frozen `features`."""
    adapter_hidden: int = 64  # features: rows of V
    feature_draws: int = 11
    """Features: tries beside the settings given, of class_decay, read_out and weight_xrm_y where
    W^y is solved, else of lr, weight_decay, eta and, with `joint`, alpha and those of W^a."""
    feature_folds: int = 4
    """Features: where few validation images go against the finding, tries are judged by training
    images too, each answered by one of so many trainings without it; 0: by validation alone."""
    transplants: bool = False
    """Features: where the groups are of a scan's findings, each training image is also shown with
    their cues exchanged, as a member of another group, and with a control. `compare` leaves this
    out: all methods see the same images."""
    refit: bool = False
    """Features: what held-out images have chosen is fitted again on training and validation images
    together, the control too; not where there are no test images to score on."""

    # images
    image_size: int = 224  # pixels that the backbone sees
    resize: int = 256  # evaluation: shorter side to `resize`, then the centre `image_size`
    augment: bool = True  # RandomResizedCrop, scale .7-1, ratio 3/4-4/3
    flip: bool = True  # random mirror images in training
    recolour: bool = False
    """Prompts: where stage 1 without a scan has mined a colour, every training image is also shown
    in the other value's colours, as a member of that group. Only where stage 1 reads the other
    value off recoloured images."""
    keep_patches: float = 1.0
    """Share of an image's patches that goes on after a third of the backbone's blocks: those that
    CLS attends to most there. Below 1 training and serving are quicker and see less; 1: all."""

    # optimisation
    epochs: int = 20  # times `epoch_size`
    epoch_size: int = 0  # draws per epoch; 0: as many as there are training images
    max_steps: int = 0  # 0: no limit
    batch_size: int = 64  # over all processes
    lr: float = 0.1  # learning rate at the start
    momentum: float = 0.9  # of SGD
    weight_decay: float = 1e-3  # on prompts, adapters and heads
    clip: float = 1.0  # largest norm of the gradient; 0: no clipping
    optimiser: str = "sgd"  # by name: `d2cp.core.optimisers`
    lr_schedule: str = "constant"  # by name: `d2cp.core.optimisers`
    lr_every: int = 10  # epochs; the paper gives neither this nor gamma
    lr_gamma: float = 0.1  # factor of a fall of the `step` schedule
    ema: float = 0.0  # decay of an average of the weights, which is what is kept; 0: no average
    precision: Literal["no", "bf16", "fp16"] = "no"  # mixed precision of the training steps

    # prompts and heads
    prompt_length: int = 10  # prompts added in every layer
    prompt_dropout: float = 0.1  # share of prompt entries dropped in training
    prompt_start: PromptStart = "drawn"
    """Prompts: heads are `drawn` at random and both branches learn (the paper's form), or `solved`
    on features under untrained prompts: W^a then stays, and the class branch trains alone."""
    head_init: float = 0.01  # standard deviation; the paper gives none
    head_bias: bool = True  # whether heads have a bias

    # group losses
    alpha: float = 1.2  # sampling exponent: w_i = (N / N_g)^alpha
    soft_values: bool = True
    """Features: the sampler gives an image its part in either group where its value is unsure."""
    eta: float = 0.01  # step of GroupDRO's group weights
    weight_y: float = 1.0  # of the class branch's loss over (y, a~) groups
    weight_a: float = 1.0  # of the spurious branch's loss over the same groups
    weight_xrm_y: float = 1.0  # of the class branch's loss over XRM's groups
    weight_xrm_a: float = 1.0  # of the spurious branch's loss over XRM's groups

    # cross null-space projection
    projector_grad: bool = False  # whether gradients flow through the projector too
    projection_rank: Literal["full", "difference"] = "full"
    """What is projected out: all rows of the other head, or only their differences."""
    spurious_fit: SpuriousFit = "solved"
    """Features: W^a is `solved` before the class branch trains, or learns beside it, `joint`, as
    under prompts (the paper's form)."""
    spurious_decay: float | None = None
    """Weight decay of W^a; none: weight_decay, as the paper, and 3 where W^a is solved."""
    spurious_heads: int = 1
    """Each reads what those before leave; P0^a removes all. A solved one that cannot read held-out
    images is left out. Paper: 1."""

    # the class branch
    class_fit: ClassFit = "trained"
    """Features: W^y is `trained` with an adapter, step by step (the paper's objective), or `solved`
    behind the fixed projection, without one; beside a `joint` W^a it is always trained."""
    class_decay: float = 0.1  # weight decay of a solved W^y, per image
    read_out: ReadOut = "balanced"
    """A solved W^y: groups in equal shares (`balanced`), class and value modelled side by side as
    CRM does (`additive`), or the mean of the two heads (`average`)."""

    # the rows of the ablation tables
    use_pseudo: bool = True  # CBCM: group by (y, a~)
    dual_branch: bool = True  # DCD
    use_xrm: bool = True  # auxiliary groups
    pseudo_source: PseudoSource = "cbcm"
    """Where a~ comes from: mined, drawn at random, or the true attribute."""

    # evaluation while training
    selection: SelectionRule = "val_pseudo_groups"  # what picks the kept state on validation
    evaluate_every: int = 0  # steps; 0: at the end of every epoch
    evaluate_per_group: int = 0  # at most so many validation images per group; 0: all

    def __post_init__(self) -> None:
        positive = ("image_size", "epochs", "batch_size", "lr", "prompt_length", "lr_every")
        for name in (*positive, "adapter_hidden", "spurious_heads"):
            _require(getattr(self, name) > 0, self, name, "a number above 0")
        not_negative = (
            *("epoch_size", "max_steps", "momentum", "weight_decay", "clip", "alpha", "eta"),
            *("feature_draws", "feature_folds", "class_decay"),
            *("evaluate_every", "evaluate_per_group", "head_init", "lr_gamma"),
            *("weight_y", "weight_a", "weight_xrm_y", "weight_xrm_a"),
        )
        _require(self.alpha <= 20, self, "alpha", "a number from 0 to 20")
        for name in not_negative:
            _require(getattr(self, name) >= 0, self, name, "a number of at least 0")
        _require(self.resize >= self.image_size, self, "resize", f"at least {self.image_size}")
        keep = 0 < self.keep_patches <= 1
        _require(keep, self, "keep_patches", "a share above 0, at most 1")
        for name in ("prompt_dropout", "ema"):
            _require(0 <= getattr(self, name) < 1, self, name, "a share in [0, 1)")
        require_known(self.optimiser, OPTIMISERS, "debias.optimiser")
        require_known(self.lr_schedule, SCHEDULES, "debias.lr_schedule")
        if self.class_fit == "solved" and not self.head_bias:
            raise ConfigError(
                "class_fit is solved and head_bias is off",
                remedy="set debias.class_fit = trained, or debias.head_bias = true",
            )
        if self.prompt_start == "solved":
            self._require_solvable()
        if self.recolour and (self.tier != "prompts" or not self.use_pseudo):
            raise ConfigError(
                f"recolour is on, tier is {self.tier} and use_pseudo is {self.use_pseudo}",
                expected="prompts, and pseudo labels that tell which colours are the other ones",
                remedy="leave debias.recolour out, or debias.tier and debias.use_pseudo",
            )
        if self.dual_branch and not self.use_pseudo:
            raise ConfigError(
                "dual_branch is on and use_pseudo is off",
                expected="pseudo labels for the spurious branch to learn",
                remedy="set dual_branch = false, or use_pseudo = true",
            )

    def _require_solvable(self) -> None:
        if self.tier != "prompts" or not self.dual_branch or not self.head_bias:
            raise ConfigError(
                f"prompt_start is solved, tier is {self.tier}, dual_branch is {self.dual_branch} "
                f"and head_bias is {self.head_bias}",
                expected="prompts, two branches, and heads with a bias",
                remedy="leave debias.prompt_start out, or set the others as expected",
            )

    @property
    def solves_class(self) -> bool:
        """Whether the class head is solved."""
        fixed = not self.dual_branch or self.spurious_fit == "solved"
        return self.tier == "features" and self.class_fit == "solved" and fixed

    @property
    def hidden(self) -> int:
        """Rows of V: an adapter beside a solved head stays the identity."""
        return 1 if self.solves_class else self.adapter_hidden


def _require(ok: bool, config: DebiasConfig, name: str, expected: str) -> None:
    if not ok:
        raise ConfigError(f"debias.{name} = {getattr(config, name)}", expected=expected)
