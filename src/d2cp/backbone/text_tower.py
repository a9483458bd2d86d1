"""Names and phrases as vectors: the text tower of a CLIP backbone, where its folder holds one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from d2cp.backbone.identity import EMBEDDED
from d2cp.backbone.load import quiet
from d2cp.errors import BackboneError

TEMPLATE = "a photo of a {}."
TOKENIZER = ("tokenizer.json", "vocab.json")  # either of them
BATCH = 64  # texts


@dataclass(frozen=True)
class ClassText:
    """Unit vectors [texts, E], and the map [E, D] that takes image features to their space."""

    vectors: Tensor
    projection: Tensor

    def embed(self, features: Tensor) -> Tensor:
        """Unit image embeddings [n, E] of frozen features [n, D]."""
        return normalize(features @ self.projection.T.to(features), dim=1)


@cache
def has_text_encoder(name_or_folder: str) -> bool:
    """Whether a backbone is a whole CLIP: text tower and, in a folder, the tokenizer's files."""
    return _is_whole(name_or_folder) and _has_tokenizer(Path(name_or_folder))


def _is_whole(name_or_folder: str) -> bool:
    """Whether the configuration is of both towers, not of the image tower alone."""
    from transformers import AutoConfig

    if name_or_folder == EMBEDDED:
        return False
    try:
        with quiet():
            config = AutoConfig.from_pretrained(
                name_or_folder, local_files_only=Path(name_or_folder).is_dir()
            )
    except (OSError, ValueError):
        return False
    return str(config.model_type) == "clip"


def _has_tokenizer(folder: Path) -> bool:
    """transformers makes an empty tokenizer of a folder without one, and says nothing."""
    return not folder.is_dir() or any((folder / file).is_file() for file in TOKENIZER)


@dataclass(frozen=True)
class TextTower:
    """A whole CLIP, for its texts."""

    tokenizer: Any
    model: Any

    @classmethod
    def load(cls, name_or_folder: str) -> TextTower:
        """An error where it is no whole CLIP."""
        from transformers import AutoTokenizer, CLIPModel

        local = Path(name_or_folder).is_dir()
        if not _is_whole(name_or_folder):
            raise BackboneError(
                f"{name_or_folder} has no text tower",
                expected="a whole CLIP: image tower, text tower and tokenizer",
                remedy="pass a folder with both towers, or leave out what needs text",
            )
        if not _has_tokenizer(Path(name_or_folder)):
            raise BackboneError(
                f"{name_or_folder} has no tokenizer for its text encoder",
                expected=" or ".join(TOKENIZER),
                remedy="add the tokenizer's files to the folder, or leave out what needs text",
            )
        try:
            with quiet():
                tokenizer = AutoTokenizer.from_pretrained(name_or_folder, local_files_only=local)
                model, info = CLIPModel.from_pretrained(
                    name_or_folder,
                    local_files_only=local,
                    use_safetensors=True,
                    dtype=torch.float32,
                    output_loading_info=True,
                )
        # Files of unknown origin meet transformers with exceptions of every type.
        except Exception as error:
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            raise BackboneError(
                f"the text encoder of {name_or_folder} cannot be loaded: {reason}",
                expected="a whole CLIP, with text weights and tokenizer",
                remedy="copy the folder again, or leave out what needs text",
            ) from error
        if missing := sorted(info["missing_keys"]):
            raise BackboneError(
                f"{len(missing)} weights of {name_or_folder} are absent, the first: {missing[0]}",
                expected="a whole CLIP, with the weights of both towers",
                remedy="take config.json and the weights from the same model",
            )
        tower = cls(tokenizer, model.eval())
        tower._require_sound(name_or_folder)
        return tower

    def _require_sound(self, source: str) -> None:
        known, places = len(self.tokenizer), int(self.model.config.text_config.vocab_size)
        if known > places:
            raise BackboneError(
                f"the tokenizer of {source} has {known} tokens, the text tower {places}",
                expected="a tokenizer that belongs to the weights",
                remedy="take the tokenizer's files and the weights from the same model",
            )
        for part, value in self.model.named_parameters():
            if not torch.isfinite(value).all():
                raise BackboneError(
                    f"the weight {part} of {source} has values that are not finite",
                    expected="finite weights",
                    remedy="download or copy the folder again",
                )

    @property
    def limit(self) -> int:
        """Tokens of a text at most, its start and end among them."""
        places = int(self.model.config.text_config.max_position_embeddings)
        return min(places, int(self.tokenizer.model_max_length))

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """As the tokenizer cuts them, however long."""
        with quiet():  # it warns of long ones, which are the caller's to refuse
            found: list[list[int]] = self.tokenizer(list(texts))["input_ids"]
        return found

    @torch.no_grad()
    def encode(self, texts: Sequence[str]) -> ClassText:
        """What is beyond the limit is cut off."""
        parts = []
        for start in range(0, len(texts), BATCH):
            part = list(texts[start : start + BATCH])
            tokens = self.tokenizer(
                part, padding=True, truncation=True, max_length=self.limit, return_tensors="pt"
            )
            pooled = self.model.text_model(**tokens).pooler_output
            parts.append(normalize(self.model.text_projection(pooled), dim=1))
        return ClassText(torch.cat(parts), self.model.visual_projection.weight.detach().clone())


def class_text(name_or_folder: str, class_names: Sequence[str]) -> ClassText:
    """The names as "a photo of a ...", through the CLIP that the image features come from."""
    readable = [TEMPLATE.format(name.replace("_", " ").replace("-", " ")) for name in class_names]
    return TextTower.load(name_or_folder).encode(readable)
