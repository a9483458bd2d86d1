"""Class names as vectors: the text tower of a CLIP backbone, where its folder holds one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from d2cp.backbone.load import quiet
from d2cp.errors import BackboneError

TEMPLATE = "a photo of a {}."
TOKENIZER = ("tokenizer.json", "vocab.json")  # either of them


@dataclass(frozen=True)
class ClassText:
    """Unit vectors [classes, E], and the map [E, D] that takes image features to their space."""

    vectors: Tensor
    projection: Tensor

    def embed(self, features: Tensor) -> Tensor:
        """Unit image embeddings [n, E] of frozen features [n, D]."""
        return normalize(features @ self.projection.T.to(features), dim=1)


@cache
def has_text_encoder(name_or_folder: str) -> bool:
    """Whether a backbone is a whole CLIP: text tower and, in a folder, the tokenizer's files."""
    from transformers import AutoConfig

    if name_or_folder == "embedded":
        return False
    try:
        with quiet():
            config = AutoConfig.from_pretrained(
                name_or_folder, local_files_only=Path(name_or_folder).is_dir()
            )
    except (OSError, ValueError):
        return False
    return str(config.model_type) == "clip" and _has_tokenizer(Path(name_or_folder))


def _has_tokenizer(folder: Path) -> bool:
    """transformers makes an empty tokenizer of a folder without one, and says nothing."""
    return not folder.is_dir() or any((folder / file).is_file() for file in TOKENIZER)


@torch.no_grad()
def class_text(name_or_folder: str, class_names: Sequence[str]) -> ClassText:
    """The names as "a photo of a ...", through the CLIP that the image features come from."""
    from transformers import AutoTokenizer, CLIPModel

    local = Path(name_or_folder).is_dir()
    if not _has_tokenizer(Path(name_or_folder)):
        raise BackboneError(
            f"{name_or_folder} has no tokenizer for its text encoder",
            expected=" or ".join(TOKENIZER),
            remedy="add the tokenizer's files to the folder, or leave out methods that need text",
        )
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(name_or_folder, local_files_only=local)
            model = CLIPModel.from_pretrained(
                name_or_folder, local_files_only=local, use_safetensors=True, dtype=torch.float32
            ).eval()
    except (OSError, ValueError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise BackboneError(
            f"the text encoder of {name_or_folder} cannot be loaded: {reason}",
            expected="a whole CLIP, with text weights and tokenizer",
            remedy="copy the folder again, or leave out methods that need text",
        ) from error
    readable = [TEMPLATE.format(name.replace("_", " ").replace("-", " ")) for name in class_names]
    tokens = tokenizer(readable, padding=True, truncation=True, return_tensors="pt")
    pooled = model.text_model(**tokens).pooler_output
    vectors = normalize(model.text_projection(pooled), dim=1)
    return ClassText(vectors, model.visual_projection.weight.detach().clone())
