"""The deployed model in Hugging Face's form: one folder, loaded without the original backbone.

Prompts are stored as what they are when serving: keys and values, computed once for ever; adapters
as they are. The projection is folded into the head. `pixel_values` are normalised pixels, as the
folder's image processor makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import (
    AutoConfig,
    AutoModelForImageClassification,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.utils import ModelOutput

from d2cp.backbone import Backbone, backbone_from_config
from d2cp.debias.adapters import Adapter
from d2cp.debias.prompts import features_with_prefixes
from d2cp.errors import RunError
from d2cp.export.model_type import D2CPClassifierConfig


@dataclass
class D2CPOutput(ModelOutput):  # type: ignore[misc]
    loss: Tensor | None = None
    logits: Tensor | None = None
    shortcut_logits: Tensor | None = None


class D2CPForImageClassification(PreTrainedModel):  # type: ignore[misc]
    """One ViT pass, with L extra keys and values a layer or an adapter behind it. The shortcut
    costs a second pass with prompts, and a second adapter with adapters."""

    config_class = D2CPClassifierConfig
    main_input_name = "pixel_values"
    base_model_prefix = "backbone"

    def __init__(self, config: D2CPClassifierConfig) -> None:
        super().__init__(config)
        self.backbone: Backbone = backbone_from_config(_library_config(config.backbone))
        self.backbone.thinned(config.keep_patches)
        width, heads = self.backbone.width, self.backbone.heads
        branches = 1 if config.shortcut_labels is None else 2
        if config.adapter_hidden:
            made = (Adapter(width, config.adapter_hidden, seed=0) for _ in range(branches))
            self.adapters = nn.ModuleList(made)
        else:
            shape = (branches, self.backbone.depth, heads, config.prompt_length, width // heads)
            self.prefix_keys = nn.Parameter(torch.zeros(shape))
            self.prefix_values = nn.Parameter(torch.zeros(shape))
        self.head = nn.Linear(width, config.num_labels, bias=config.head_bias)
        if config.shortcut_labels is not None:
            count = len(config.shortcut_labels)
            self.shortcut_head = nn.Linear(width, count, bias=config.head_bias)
        self.post_init()

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        """Weights that are absent would be whatever lay in memory: nothing less than all of them,
        nothing more, and finite."""
        asked = kwargs.pop("output_loading_info", False)
        kwargs["ignore_mismatched_sizes"] = True  # refused below, by name
        model, info = super().from_pretrained(*args, output_loading_info=True, **kwargs)
        for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
            if found := sorted(str(key) for key in info.get(what) or ()):
                raise RunError(
                    f"the weights do not fit the configuration: {len(found)} "
                    f"{what.removesuffix('_keys')}, the first {found[0]}",
                    expected="the files of one export, as d2cp export wrote them",
                    remedy="export it again",
                )
        for name, value in model.state_dict().items():
            if not torch.isfinite(value).all():
                raise RunError(
                    f"the weight {name} has values that are not finite",
                    expected="the files of one export, as d2cp export wrote them",
                    remedy="export it again",
                )
        return (model, info) if asked else model

    def _init_weights(self, module: nn.Module) -> None:
        """Weights come from a run or a folder; there is nothing to draw."""

    def forward(self, pixel_values: Tensor, labels: Tensor | None = None, **_: Any) -> D2CPOutput:
        features = self._branches(pixel_values)
        logits = self.head(features[0])
        shortcut = None
        if self.config.shortcut_labels is not None:
            shortcut = self.shortcut_head(features[1])
        loss = None if labels is None else cross_entropy(logits, labels)
        return D2CPOutput(loss=loss, logits=logits, shortcut_logits=shortcut)

    def _branches(self, pixels: Tensor) -> Tensor | list[Tensor]:
        """h [branches, B, D]."""
        if self.config.adapter_hidden:
            frozen = self.backbone.features(pixels)
            return [adapter(frozen) for adapter in self.adapters]
        keys, values = self.prefix_keys.unbind(1), self.prefix_values.unbind(1)
        layers = list(zip(keys, values, strict=True))
        return features_with_prefixes(self.backbone, layers, pixels)


def _library_config(values: dict[str, Any] | None) -> PretrainedConfig:
    if values is None:
        raise ValueError("the configuration names no backbone")
    plain = {name: value for name, value in values.items() if name != "model_type"}
    return AutoConfig.for_model(values["model_type"], **plain)


AutoModelForImageClassification.register(
    D2CPClassifierConfig, D2CPForImageClassification, exist_ok=True
)
