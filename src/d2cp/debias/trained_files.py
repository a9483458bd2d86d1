"""The artifact of stage 2: model.safetensors and debias.json, all that evaluation and export need
besides the backbone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from d2cp.backbone import Backbone, load_backbone
from d2cp.backbone.identity import backbone_key
from d2cp.config.debias import DebiasConfig
from d2cp.config.strict import build
from d2cp.core.files import read_json, write_bytes, write_json
from d2cp.debias.adapters import Adapter, AdapterClassifier, DualAdapter
from d2cp.debias.dual_branch import DualBranch, PromptClassifier
from d2cp.debias.loop import Fitted, Score
from d2cp.debias.parameter_count import ParameterCount
from d2cp.debias.settings_search import Draw
from d2cp.debias.solved_adapter import SolvedDualAdapter
from d2cp.debias.solved_branch import SolvedDualBranch
from d2cp.debias.train import Trained
from d2cp.debias.training_tiers import Model
from d2cp.errors import BackboneError, RunError

WEIGHTS, DESCRIPTION = "model.safetensors", "debias.json"


@dataclass(frozen=True)
class Artifact:
    """A trained model with the names it speaks of. `backbone` is what `load_backbone` takes."""

    trained: Trained
    backbone: str
    class_names: tuple[str, ...]
    attribute_names: tuple[str, ...]
    centre_crop: int | None = None  # of the data set: cut out before the resize
    draws: tuple[Draw, ...] = ()  # what the search tried, on frozen features
    backbone_key: str = ""  # the content it was trained on; empty: not known

    def load_backbone(self) -> Backbone:
        """The backbone it was trained on: prompts mean nothing to other weights."""
        backbone = load_backbone(self.backbone, self.trained.config.keep_patches)
        if self.backbone_key and backbone_key(self.backbone) != self.backbone_key:
            raise BackboneError(
                f"the backbone {self.backbone} has changed since this classifier was trained",
                expected="the same files",
                remedy="put them back, or run again: the stages that used them are redone",
            )
        return backbone


def save_artifact(directory: Path, artifact: Artifact) -> None:
    trained = artifact.trained
    state = {name: value.cpu().contiguous() for name, value in trained.model.state_dict().items()}
    write_bytes(directory / WEIGHTS, save_tensors(state, metadata={"format": "pt"}))
    fitted = asdict(trained.fitted)
    write_json(
        directory / DESCRIPTION,
        {
            "backbone": artifact.backbone,
            "backbone_key": artifact.backbone_key,
            "class_names": artifact.class_names,
            "attribute_names": artifact.attribute_names,
            "centre_crop": artifact.centre_crop,
            "seed": trained.seed,
            "parameters": asdict(trained.parameters),
            "fitted": fitted,
            "config": asdict(trained.config),
            "draws": [draw.to_dict() for draw in artifact.draws],
        },
    )


def load_artifact(directory: Path) -> Artifact:
    """What `save_artifact` wrote: every weight of it, and no other."""
    try:
        state = load_tensors((directory / WEIGHTS).read_bytes())
        return _artifact(state, read_json(directory / DESCRIPTION))
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise RunError(
            f"the classifier in {directory} cannot be read: {reason}",
            expected=f"{WEIGHTS} and {DESCRIPTION}, written together by a finished stage",
            remedy=f"delete {directory} and run again: the other stages are kept",
        ) from error


def _artifact(state: dict[str, Tensor], found: dict[str, Any]) -> Artifact:
    config = build(DebiasConfig, found["config"], "debias")
    trained = Trained(
        _model(state, config),
        config,
        int(found["seed"]),
        _fitted(found["fitted"]),
        ParameterCount(**found["parameters"]),
    )
    return Artifact(
        trained,
        found["backbone"],
        tuple(found["class_names"]),
        tuple(found["attribute_names"]),
        found["centre_crop"],
        tuple(Draw(**{**draw, "score": _score(draw["score"])}) for draw in found["draws"]),
        str(found.get("backbone_key", "")),
    )


def _fitted(values: dict[str, Any]) -> Fitted:
    return Fitted(**{**values, "best_score": _score(values["best_score"])})


def _score(found: list[float] | None) -> Score | None:
    return None if found is None else tuple(found)


def _model(state: dict[str, Tensor], config: DebiasConfig) -> Model:
    def head(name: str) -> nn.Linear:
        classes, width = state[f"{name}.weight"].shape
        return nn.Linear(width, classes, bias=config.head_bias)

    def adapter(name: str) -> Adapter:
        hidden, width = state[f"{name}.down.weight"].shape
        return Adapter(width, hidden, seed=0)  # its values are loaded below

    model: Model
    dual = "head_y.weight" in state
    if "prompts" not in state:
        if dual:
            adapters = adapter("adapter_y"), adapter("adapter_a")
            kind = SolvedDualAdapter if config.spurious_fit == "solved" else DualAdapter
            model = kind(*adapters, head("head_y"), head("head_a"), config)
        else:
            model = AdapterClassifier(adapter("adapter"), head("head"))
    elif dual:
        of_prompts = SolvedDualBranch if "start" in state else DualBranch
        model = of_prompts(state["prompts"], head("head_y"), head("head_a"), config)
    else:
        model = PromptClassifier(state["prompts"], head("head"))
    model.load_state_dict(state)
    return model
