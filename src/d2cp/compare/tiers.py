"""Two tiers behind one interface: images under prompts, or frozen features under an adapter.

A method asks a space for inputs and for a classifier, and so runs on both without knowing which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from d2cp.compare.contract import Tier
from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import Rows
from d2cp.debias.adapters import Adapter, standardise_adapters
from d2cp.debias.cross_heads import init_head

if TYPE_CHECKING:
    from d2cp.backbone import Backbone
    from d2cp.data.store import ImageStore
    from d2cp.debias.loop import Read

READ = 256  # inputs read at once when nothing is trained


class Classifier(nn.Module, ABC):
    """Trainable features and a linear head. `step` switches a training step's dropout on."""

    head: nn.Linear

    @abstractmethod
    def features(self, inputs: Tensor, step: int | None = None) -> Tensor:
        """h [B, D], what the head reads."""

    def forward(self, inputs: Tensor, step: int | None = None) -> Tensor:
        logits: Tensor = self.head(self.features(inputs, step))
        return logits


class Space(ABC):
    """Inputs by table row, and classifiers that take them."""

    tier: Tier
    width: int
    device: torch.device  # where classifiers of this space work; inputs are read on the CPU

    @abstractmethod
    def read(self, rows: Rows, draws: Rows, epoch: int) -> Tensor:
        """Inputs for training, augmented as a function of (seed, epoch, draw)."""

    @abstractmethod
    def read_plain(self, rows: Rows) -> Tensor:
        """Inputs as they are scored."""

    @abstractmethod
    def frozen(self, rows: Rows) -> Tensor:
        """Prompt-free features [n, D], computed once for all methods."""

    @abstractmethod
    def classifier(self, outputs: int, *, seed: int) -> Classifier:
        """A fresh classifier; the same for the same seed."""

    def over(self, function: Callable[[Tensor], Tensor], rows: Rows) -> Tensor:
        """`function` of the plain inputs of `rows`, in pieces, without gradients."""
        pieces = []
        with torch.no_grad():
            for start in range(0, len(rows), READ):
                inputs = self.read_plain(rows[start : start + READ])
                pieces.append(function(inputs.to(self.device)).cpu())
        return torch.cat(pieces)


class AdaptedFeatures(Classifier):
    """An adapter and a head: the trainable part over given features."""

    def __init__(self, width: int, outputs: int, config: DebiasConfig, seed: int) -> None:
        super().__init__()
        self.adapter = Adapter(width, config.adapter_hidden, seed=seed)
        self.head = init_head(outputs, width, config, seed=seed, name="y")

    def features(self, inputs: Tensor, step: int | None = None) -> Tensor:
        adapted: Tensor = self.adapter(inputs)
        return adapted


class FeatureSpace(Space):
    """Given features [N, D] of every table row; adapters read them in units of the training rows,
    as those of `d2cp run` do."""

    tier: Tier = "features"

    def __init__(
        self,
        features: Tensor,
        config: DebiasConfig,
        *,
        train: Rows,
        device: torch.device | None = None,
    ) -> None:
        self._features, self._config = features.float(), config
        self.width, self.device = features.shape[1], device or torch.device("cpu")
        self._train = train

    def read(self, rows: Rows, draws: Rows, epoch: int) -> Tensor:
        return self.read_plain(rows)

    def read_plain(self, rows: Rows) -> Tensor:
        return self._features[torch.from_numpy(rows)]

    frozen = read_plain

    def classifier(self, outputs: int, *, seed: int) -> Classifier:
        made = AdaptedFeatures(self.width, outputs, self._config, seed)
        self.standardise(made)
        return made.to(self.device)

    def standardise(self, module: nn.Module) -> None:
        standardise_adapters(module, self.read_plain(self._train))


class PromptedImages(Classifier):
    """A prompt branch; the frozen backbone is held but is no part of the state."""

    def __init__(self, backbone: Backbone, outputs: int, config: DebiasConfig, seed: int) -> None:
        from d2cp.debias.dual_branch import PromptClassifier

        super().__init__()
        self.branch = PromptClassifier.new(backbone, outputs, config, seed=seed)
        self._frozen, self._config, self._seed = (backbone,), config, seed

    @property
    def head(self) -> nn.Linear:  # type: ignore[override]
        return self.branch.head

    def features(self, inputs: Tensor, step: int | None = None) -> Tensor:
        from d2cp.debias.prompts import prompt_mask

        mask = None
        if step is not None and self._config.prompt_dropout:
            shape = tuple(self.branch.prompts.shape)
            mask = prompt_mask(shape, self._config.prompt_dropout, seed=self._seed, step=step)
            mask = mask.to(inputs.device)
        return self.branch.features(self._frozen[0], inputs, mask)


class PromptSpace(Space):
    """Images under a frozen backbone with prompts."""

    tier: Tier = "prompts"

    def __init__(
        self,
        backbone: Backbone,
        store: ImageStore,
        frozen: Tensor,
        config: DebiasConfig,
        *,
        seed: int,
        device: torch.device | None = None,
    ) -> None:
        self.device = device or torch.device("cpu")
        self.backbone, self.store, self.config = backbone.to(self.device), store, config
        self._features, self._seed = frozen.float(), seed
        self._read = self.reader(store)
        self.width = backbone.width

    def reader(self, store: ImageStore) -> Read:
        """How training images are read, from this or another store of the same rows."""
        from d2cp.debias.reading import training_reader

        return training_reader(store, self.config, seed=self._seed)

    def read(self, rows: Rows, draws: Rows, epoch: int) -> Tensor:
        return self._read(rows, draws, epoch)

    def read_plain(self, rows: Rows) -> Tensor:
        from d2cp.data.pixels import centre_view

        return centre_view(self.store[rows], self.config.image_size)

    def frozen(self, rows: Rows) -> Tensor:
        return self._features[torch.from_numpy(rows)]

    def classifier(self, outputs: int, *, seed: int) -> PromptedImages:
        return PromptedImages(self.backbone, outputs, self.config, seed).to(self.device)


def prompt_space(space: Space) -> PromptSpace:
    """The space of a method that works on pixels (its Spec has kept other tiers away)."""
    if not isinstance(space, PromptSpace):
        raise TypeError("this method works on images under prompts")
    return space


def feature_space(space: Space) -> FeatureSpace:
    """The space of a method that works on given features."""
    if not isinstance(space, FeatureSpace):
        raise TypeError("this method works on frozen features")
    return space
