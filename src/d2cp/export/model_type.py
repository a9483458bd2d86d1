"""The configuration of an exported classifier, known to transformers under its model type.

Free of torch: transformers imports it together with its own list of configurations."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from transformers.configuration_utils import PretrainedConfig
from transformers.models.auto.configuration_auto import AutoConfig


class D2CPClassifierConfig(PretrainedConfig):  # type: ignore[misc]
    """`backbone` is the transformers configuration of the frozen ViT, as a dictionary."""

    model_type = "d2cp_classifier"

    def __init__(
        self,
        backbone: dict[str, Any] | None = None,
        prompt_length: int = 10,
        adapter_hidden: int = 0,
        head_bias: bool = True,
        shortcut_labels: list[str] | None = None,
        image_size: int = 224,
        resize: int = 256,
        centre_crop: int | None = None,
        keep_patches: float = 1.0,
        **kwargs: Any,
    ) -> None:
        self.backbone = backbone
        self.prompt_length = prompt_length
        self.adapter_hidden = adapter_hidden  # above 0: adapters after the backbone, no prompts
        self.head_bias = head_bias
        self.shortcut_labels = shortcut_labels  # None: exported without the spurious branch
        self.image_size = image_size
        self.resize = resize
        self.centre_crop = centre_crop  # cut out at native resolution first, as for CelebA
        self.keep_patches = keep_patches  # share of the patches after a third of the blocks
        super().__init__(**kwargs)
        import_module("d2cp.export.hugging_face")  # registers the model of this configuration


AutoConfig.register(D2CPClassifierConfig.model_type, D2CPClassifierConfig, exist_ok=True)
