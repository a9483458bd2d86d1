"""From a trained artifact to a folder to ship."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor

from d2cp.backbone import Backbone
from d2cp.core.files import write_json
from d2cp.debias.dual_branch import PromptClassifier
from d2cp.debias.logits import Classifier
from d2cp.debias.prompts import prefixes
from d2cp.debias.trained_files import Artifact
from d2cp.errors import ConfigError, RunError
from d2cp.export.hugging_face import D2CPForImageClassification
from d2cp.export.model_type import D2CPClassifierConfig


@torch.no_grad()
def deployed_model(
    artifact: Artifact,
    backbone: Backbone,
    backbone_config: dict[str, Any],
    *,
    with_shortcut: bool = False,
) -> D2CPForImageClassification:
    """The target branch with P0^a in its head; with the spurious branch beside it if asked.

    `backbone_config` is the transformers configuration that `backbone` was loaded with.
    """
    classifier = artifact.trained.classifier()
    shortcut = artifact.trained.shortcut() if with_shortcut else None
    if with_shortcut and shortcut is None:
        raise ConfigError(
            "the model to export has no spurious branch",
            expected="D2CP, of a run with debias.dual_branch = true",
            remedy="export with --model d2cp, or without --with-shortcut",
        )
    config, prompted = artifact.trained.config, isinstance(classifier, PromptClassifier)
    model = D2CPForImageClassification(
        D2CPClassifierConfig(
            backbone=backbone_config,
            prompt_length=config.prompt_length if prompted else 0,
            adapter_hidden=0 if prompted else config.hidden,
            head_bias=config.head_bias,
            shortcut_labels=None if shortcut is None else list(artifact.attribute_names),
            image_size=config.image_size,
            resize=config.resize,
            centre_crop=artifact.centre_crop,
            keep_patches=config.keep_patches,
            id2label=dict(enumerate(artifact.class_names)),
            label2id={name: index for index, name in enumerate(artifact.class_names)},
        )
    )
    model.backbone.load_state_dict(backbone.state_dict())
    _load_branches(model, backbone, [classifier] if shortcut is None else [classifier, shortcut])
    model.head.load_state_dict(classifier.head.state_dict())
    if shortcut is not None:
        model.shortcut_head.load_state_dict(shortcut.head.state_dict())
    model.requires_grad_(False).eval()
    return model


def _load_branches(
    model: D2CPForImageClassification, backbone: Backbone, branches: list[Classifier]
) -> None:
    for index, branch in enumerate(branches):
        if isinstance(branch, PromptClassifier):
            keys, values = _prefix_stack(backbone, branch)
            model.prefix_keys[index].copy_(keys[0])
            model.prefix_values[index].copy_(values[0])
        else:
            model.adapters[index].load_state_dict(branch.adapter.state_dict())


def _prefix_stack(backbone: Backbone, branch: PromptClassifier) -> tuple[Tensor, Tensor]:
    """Keys and values [1, layers, heads, L, d]."""
    layers = prefixes(backbone, branch.prompts)
    keys, values = zip(*layers, strict=True)
    return torch.stack(keys, dim=1), torch.stack(values, dim=1)


def save_deployed(model: D2CPForImageClassification, backbone: Backbone, directory: Path) -> None:
    """config.json, model.safetensors and preprocessor_config.json."""
    try:
        model.save_pretrained(directory)
    except (OSError, SafetensorError) as error:  # a full disk is either, by the file it meets
        raise RunError(
            f"could not write {directory.parent}: {next(iter(str(error).splitlines()), '')}",
            expected="a writable directory with free space",
            remedy="free some space or choose another --to; nothing was half-written",
        ) from error
    config = model.config
    write_json(
        directory / "preprocessor_config.json",
        {
            "image_processor_type": "CLIPImageProcessor",  # resize, centre crop, normalise
            "do_convert_rgb": True,
            "do_resize": True,
            "size": {"shortest_edge": config.resize},
            "resample": 2,
            "do_center_crop": True,
            "crop_size": {"height": config.image_size, "width": config.image_size},
            "do_rescale": True,
            "rescale_factor": 1 / 255,
            "do_normalize": True,
            "image_mean": list(backbone.mean),
            "image_std": list(backbone.std),
        },
    )
    # safetensors makes its files private; whoever may read the one may read the other
    mode = (directory / "preprocessor_config.json").stat().st_mode
    (directory / "model.safetensors").chmod(mode)


def backbone_configuration(name_or_folder: str) -> dict[str, Any]:
    """The transformers configuration of a backbone that `load_backbone` can load."""
    from transformers import AutoConfig

    from d2cp.backbone.identity import EMBEDDED
    from d2cp.backbone.load import EMBEDDED_FOLDER, quiet

    source = str(EMBEDDED_FOLDER) if name_or_folder == EMBEDDED else name_or_folder
    with quiet():
        # Loading the backbone has fetched it: nothing is asked of the hub again.
        config = AutoConfig.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    if config.model_type == "clip":
        config = config.vision_config
    values: dict[str, Any] = config.to_dict()
    values.pop("_name_or_path", None)  # a folder of this machine
    return values
