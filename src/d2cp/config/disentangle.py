"""Every choice of the concept model: what the paper and EncDiff leave open, with our defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args, get_type_hints

from d2cp.core.optimisers import OPTIMISERS, SCHEDULES, require_known
from d2cp.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """f_C: an image to the scalars that no guide gives."""

    kind: Literal["paper", "code"] = "paper"
    """`paper` (plain convolutions, two hidden layers) or `code` (batch-norm, residual)."""
    width: int = 16
    """Channels of the first convolution (EncDiff: 64 in the paper, 128 in the code)."""
    hidden: int = 128
    """Width of the two hidden layers of the `paper` encoder (EncDiff: 256)."""

    def __post_init__(self) -> None:
        _check(self, "encoder", {"width": 1, "hidden": 1})


@dataclass(frozen=True, kw_only=True)
class TokensConfig:
    """Φ: a scalar to the token that the U-Net attends to."""

    map: Literal["per-concept", "shared"] = "per-concept"
    """One small network per concept, or a shared trunk with a learned embedding of each."""
    hidden: tuple[int, ...] = (32, 32)
    """Widths of the hidden layers of Φ (EncDiff's code: 64, 128)."""
    dim: int = 16
    """D: length of a concept token (EncDiff: 32 in the paper, 16 in the code)."""
    gain: float = 1.0
    """Factor on each layer of Φ at the start. Small tokens are read late, too late
    for a short run."""

    def __post_init__(self) -> None:
        _check(self, "tokens", {"dim": 1})
        if self.gain <= 0:
            raise ConfigError(f"disentangle.tokens.gain = {self.gain}", expected="above 0")


@dataclass(frozen=True, kw_only=True)
class UNetConfig:
    """The denoiser ε_θ."""

    channels: tuple[int, ...] = (32, 64)
    """Channels of each level, finest first."""
    layers: int = 1
    """Residual blocks of a level."""
    heads: int = 4
    """Attention heads."""
    attention: tuple[int, ...] = (1,)
    """Levels (0 = finest) that attend to the tokens; the middle always does."""
    sketch: int = 0
    """Channels of a sketch that the U-Net sees beside z_t: a linear picture of each token, summed
    over the concepts. Attention alone learns late where a token's content belongs. 0 = none, as
    EncDiff has it."""

    def __post_init__(self) -> None:
        _check(self, "unet", {"layers": 1, "heads": 1, "sketch": 0})


@dataclass(frozen=True, kw_only=True)
class EMAConfig:
    """The average of the weights that stage 1 ends with: decay min(decay, (1+n)/(10+n)) at step
    n, so that a short run forgets its start."""

    decay: float = 0.995
    """0 = no average (EncDiff: .9999)."""
    scope: Literal["all", "denoiser"] = "all"
    """What is averaged (EncDiff: all in the paper, the denoiser in the code)."""

    def __post_init__(self) -> None:
        _check(self, "ema", {"decay": 0})


@dataclass(frozen=True, kw_only=True)
class VQConfig:
    """The autoencoder of `space = "vq"`: 4 times smaller latents of 3 channels."""

    channels: tuple[int, ...] = (32, 64, 128)
    """Channels of each level."""
    codebook: int = 2048
    """Entries of the codebook."""
    steps: int = 2000  # training steps of the autoencoder
    batch: int = 32  # images a step
    lr: float = 1e-3  # learning rate

    def __post_init__(self) -> None:
        _check(self, "vq", {"steps": 1, "batch": 1, "codebook": 2}, above=("lr",))


@dataclass(frozen=True, kw_only=True)
class GuideConfig:
    """Concepts that see what a lazy classifier sees (beyond the paper)."""

    concepts: int = 9
    """How many of the K scalars come from the guide, at most: never more than one fewer than there
    are classes, nor than half of K. 0 = the paper's form."""
    folds: int = 2
    """Lazy classifiers; an image's scalar comes from the one that never saw its label."""
    width: int = 16  # channels of the first convolution
    steps: int = 300  # training steps of each network
    batch: int = 64  # images a step
    lr: float = 2e-3  # learning rate
    q: float = 0.7
    """q of the generalised cross-entropy; 0 = plain cross-entropy."""
    shift: float = 0.1
    """Augmentation of the guide: random shift, as a share of the side."""
    flip: bool = False
    """Augmentation of the guide: random mirror images, which hide a cue of left and right."""

    balance: float = 50.0
    """Images whose label the guide does not foresee are drawn more often, up to this many times, so
    that class and cue come independent of each other: else the cue's token tells the denoiser the
    class, and a swap of it changes both. 1 = all images alike."""
    decorrelate: float = 1.0
    """Weight of the squared correlation of the other scalars with the guide's, so that these do
    not copy the cue and a swap of the guided concept changes it alone."""

    def __post_init__(self) -> None:
        least = {"concepts": 0, "folds": 2, "steps": 1, "batch": 2, "balance": 1, "decorrelate": 0}
        _check(self, "guide", {**least, "width": 1, "q": 0, "shift": 0}, above=("lr",))


@dataclass(frozen=True, kw_only=True)
class DisentangleConfig:
    """Stage 1 of the paper. Defaults are the `demo` sizes; presets override them."""

    # What the model sees.
    size: int = 28
    """Side of the square image, in pixels."""
    space: Literal["pixel", "vq"] = "pixel"
    """Where diffusion runs: `pixel` (space-to-depth by `unshuffle`) or `vq` latents (f=4)."""
    unshuffle: int = 4
    """Pixel space only: side of the pixel block that becomes channels."""

    # Concepts.
    concepts: int = 10
    """K: scalars per image."""
    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    scalar_norm: bool = True
    """Standardise the encoder's scalars over the batch. They start near zero, where every token is
    almost a constant and a short run never learns to read it. Off: as EncDiff has it."""
    decorrelate: float = 1.0
    """Weight of the squared correlation of the encoder's scalars with each other. Standardised,
    they all grow along the one strongest direction and become copies. 0: as EncDiff has it."""
    tokens: TokensConfig = field(default_factory=TokensConfig)
    unet: UNetConfig = field(default_factory=UNetConfig)

    # Diffusion.
    timesteps: int = 1000  # T: noise levels of the diffusion
    noise_schedule: Literal["cosine", "scaled_linear"] = "cosine"  # how ᾱ falls with t
    loss: Literal["mse", "l1"] = "mse"  # of the predicted noise
    predict: Literal["z0", "eps"] = "z0"
    """What the network's output means; the loss is on ε̂ either way. `eps` (EncDiff) must carry all
    the noise through the network: in folded pixels that takes twice as many channels as a block
    has values. `z0` need not."""
    min_snr: float = 0.01
    """γ of the weight min(SNR, γ)/SNR on the loss of a noise level; 0 = 1, the paper's loss. A
    small γ asks most of the levels that hide the image, where only the tokens can tell."""

    noise_bias: float = 1.0
    """b of the times t = T(1 − u^b), u even: above 1 the noisy levels, where only the tokens tell,
    are drawn more often. 1 = all alike."""

    # Training.
    steps: int = 500  # training steps of encoder, tokens and denoiser
    batch: int = 64  # images a step, over all processes
    lr: float = 2e-3  # learning rate at its highest
    optimiser: str = "adamw"
    """By name: `d2cp.core.optimisers`."""
    lr_schedule: str = "cosine"
    """`constant` or `cosine`, after the warm-up."""
    warmup: int = 30  # steps over which the learning rate grows to it
    weight_decay: float = 0.01  # of the optimiser
    clip: float = 1.0
    """Largest norm of the gradient; 0 = no clipping."""
    ema: EMAConfig = field(default_factory=EMAConfig)
    precision: Literal["no", "bf16", "fp16"] = "no"  # mixed precision of the training steps

    vq: VQConfig = field(default_factory=VQConfig)
    guide: GuideConfig = field(default_factory=GuideConfig)

    # Pictures.
    ddim_steps: int = 25  # denoising steps of a drawn picture

    def __post_init__(self) -> None:
        least = {"size": 8, "concepts": 1, "steps": 1, "batch": 2, "timesteps": 2, "ddim_steps": 1}
        zero = dict.fromkeys(("decorrelate", "weight_decay", "clip", "warmup", "min_snr"), 0)
        _check(self, "", {**least, **zero}, above=("lr",))
        require_known(self.optimiser, OPTIMISERS, "disentangle.optimiser")
        require_known(self.lr_schedule, SCHEDULES, "disentangle.lr_schedule")
        if self.noise_bias <= 0:
            raise ConfigError(f"disentangle.noise_bias = {self.noise_bias}", expected="above 0")
        block = self.unshuffle if self.space == "pixel" else 4
        if block < 1 or self.size % block:
            raise ConfigError(
                f"disentangle.size = {self.size} is not a multiple of {block}",
                expected="a side that divides into whole blocks",
                remedy="change size, or unshuffle in pixel space",
            )
        if self.guide.concepts and self.concepts < 2:
            raise ConfigError(
                f"disentangle.concepts = {self.concepts}",
                expected="at least 2 with a guide: one of its own and one of the encoder's",
                remedy="raise concepts, or set guide.concepts = 0",
            )


def _check(config: Any, part: str, least: Mapping[str, float], above: Sequence[str] = ()) -> None:
    """Names among their choices, numbers not below `least`, those in `above` above 0."""
    where = f"disentangle.{part}." if part else "disentangle."
    hints = get_type_hints(type(config))
    for name in (f.name for f in fields(config)):
        choices = [c for c in get_args(hints[name]) if isinstance(c, str)]
        if choices and getattr(config, name) not in choices:
            raise ConfigError(
                f"{where}{name} = {getattr(config, name)!r}",
                expected=" or ".join(choices),
                remedy=f"choose one of these for {name}",
            )
    for name in above:
        if getattr(config, name) <= 0:
            raise ConfigError(f"{where}{name} = {getattr(config, name)}", expected="above 0")
    for name, low in least.items():
        if getattr(config, name) < low:
            raise ConfigError(
                f"{where}{name} = {getattr(config, name)}", expected=f"at least {low}"
            )
