"""Every choice of the concept model: what the paper and EncDiff leave open, with our defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args, get_type_hints

from d2cp.errors import ConfigError


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
    encoder: Literal["paper", "code"] = "paper"
    """f_C: `paper` (plain convolutions, two hidden layers) or `code` (batch-norm, residual)."""
    encoder_width: int = 16
    """Channels of the first convolution (EncDiff: 64 in the paper, 128 in the code)."""
    encoder_hidden: int = 128
    """Width of the two hidden layers of the `paper` encoder (EncDiff: 256)."""
    scalar_norm: bool = True
    """Standardise the encoder's scalars over the batch. They start near zero, where every token is
    almost a constant and a short run never learns to read it. Off: as EncDiff has it."""
    decorrelate: float = 1.0
    """Weight of the squared correlation of the encoder's scalars with each other. Standardised,
    they all grow along the one strongest direction and become copies. With several processes
    each takes its share of the batch. 0: as EncDiff has it."""
    token_map: Literal["per-concept", "shared"] = "per-concept"
    """Φ: one small network per concept, or a shared trunk with a learned embedding of each."""
    token_hidden: tuple[int, ...] = (32, 32)
    token_dim: int = 16
    """D: length of a concept token (EncDiff: 32 in the paper, 16 in the code)."""
    token_gain: float = 1.0
    """Factor on each layer of Φ at the start. Small tokens are read late, too late
    for a short run."""

    # Denoiser.
    unet_channels: tuple[int, ...] = (32, 64)
    unet_layers: int = 1
    unet_heads: int = 4
    unet_attention: tuple[int, ...] = (1,)
    """Levels of the U-Net (0 = finest) that attend to the tokens; the middle always does."""

    unet_sketch: int = 0
    """Channels of a sketch that the U-Net sees beside z_t: a linear picture of each token, summed
    over the concepts. Attention alone learns late where a token's content belongs. 0 = none, as
    EncDiff has it."""

    # Diffusion.
    timesteps: int = 1000
    schedule: Literal["cosine", "scaled_linear"] = "cosine"
    beta_start: float = 0.0015
    beta_end: float = 0.0155
    loss: Literal["mse", "l1"] = "mse"
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
    steps: int = 500
    batch: int = 64
    lr: float = 2e-3
    lr_decay: Literal["constant", "cosine"] = "cosine"
    warmup: int = 30
    weight_decay: float = 0.01
    clip: float = 1.0
    """Largest norm of the gradient; 0 = no clipping."""
    ema: float = 0.995
    ema_warmup: bool = True
    """Decay min(ema, (1+n)/(10+n)) at step n, so that a short run forgets its start."""
    ema_scope: Literal["all", "denoiser"] = "all"
    precision: Literal["no", "bf16", "fp16"] = "no"

    # VQ autoencoder (space = vq).
    vq_channels: tuple[int, ...] = (32, 64, 128)
    vq_layers: int = 1
    vq_latent: int = 3
    vq_codebook: int = 2048
    vq_commitment: float = 0.25
    vq_steps: int = 2000
    vq_batch: int = 32
    vq_lr: float = 1e-3

    # Guide: tokens that see what a lazy classifier sees (beyond the paper).
    guide_concepts: int = 9
    """How many of the K scalars come from the guide, at most: never more than one fewer than there
    are classes, nor than half of K. 0 = the paper's form."""
    guide_folds: int = 2
    """Lazy classifiers; an image's scalar comes from the one that never saw its label."""
    guide_width: int = 16
    guide_steps: int = 300
    guide_batch: int = 64
    guide_lr: float = 2e-3
    guide_weight_decay: float = 0.05
    guide_q: float = 0.7
    """q of the generalised cross-entropy; 0 = plain cross-entropy."""
    guide_shift: float = 0.1
    """Augmentation of the guide: random shift, as a share of the side."""
    guide_flip: bool = False
    """Augmentation of the guide: random mirror images, which hide a cue of left and right."""

    guide_balance: float = 50.0
    """Images whose label the guide does not foresee are drawn more often, up to this many times, so
    that class and cue come independent of each other: else the cue's token tells the denoiser the
    class, and a swap of it changes both. 1 = all images alike."""
    guide_decorrelate: float = 1.0
    """Weight of the squared correlation of the other scalars with the guide's, so that these do
    not copy the cue and a swap of the guided concept changes it alone."""

    # Pictures.
    ddim_steps: int = 25

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for name in (f.name for f in fields(self)):
            choices = [c for c in get_args(hints[name]) if isinstance(c, str)]
            if choices and getattr(self, name) not in choices:
                raise ConfigError(
                    f"disentangle.{name} = {getattr(self, name)!r}",
                    expected=" or ".join(choices),
                    remedy=f"choose one of these for {name}",
                )
        least = {"size": 8, "concepts": 1, "token_dim": 1, "steps": 1, "batch": 2, "timesteps": 2}
        least |= {"guide_concepts": 0, "guide_folds": 2, "ddim_steps": 1, "vq_steps": 1}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise ConfigError(
                    f"disentangle.{name} = {getattr(self, name)}", expected=f"at least {low}"
                )
        for name in ("decorrelate", "guide_decorrelate", "unet_sketch"):
            if getattr(self, name) < 0:
                raise ConfigError(
                    f"disentangle.{name} = {getattr(self, name)}", expected="0 or more"
                )
        if self.guide_balance < 1:
            raise ConfigError(
                f"disentangle.guide_balance = {self.guide_balance}", expected="1 or more"
            )
        for name in ("token_gain", "noise_bias"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"disentangle.{name} = {getattr(self, name)}", expected="above 0")
        block = self.unshuffle if self.space == "pixel" else 4
        if block < 1 or self.size % block:
            raise ConfigError(
                f"disentangle.size = {self.size} is not a multiple of {block}",
                expected="a side that divides into whole blocks",
                remedy="change size, or unshuffle in pixel space",
            )
        if self.guide_concepts and self.concepts < 2:
            raise ConfigError(
                f"disentangle.concepts = {self.concepts}",
                expected="at least 2 with a guide: one of its own and one of the encoder's",
                remedy="raise concepts, or set guide_concepts = 0",
            )
