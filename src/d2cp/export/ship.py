"""From the artifact of a run to a finished export folder, all or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from d2cp.backbone.load import quiet
from d2cp.core.files import read_json, whole_folder, write_text
from d2cp.core.run_directory import RunDirectory
from d2cp.debias.trained_files import load_artifact
from d2cp.errors import RunError
from d2cp.export.folded import backbone_configuration, deployed_model, save_deployed
from d2cp.export.model_card import model_card
from d2cp.export.model_type import D2CPClassifierConfig


@dataclass(frozen=True)
class Shipped:
    parameters: int
    onnx_difference: float | None


def ship(
    artifact_folder: Path, to: Path, *, onnx: bool = False, with_shortcut: bool = False
) -> Shipped:
    """Write the export of a debias artifact to `to`, which takes its name only when complete."""
    _check_target(to)
    artifact = load_artifact(artifact_folder)
    backbone = artifact.load_backbone()
    configuration = backbone_configuration(artifact.backbone)
    model = deployed_model(artifact, backbone, configuration, with_shortcut=with_shortcut)
    difference = None
    with whole_folder(to) as folder:
        with quiet():
            save_deployed(model, backbone, folder)
        if onnx:
            from d2cp.export.onnx_file import export_onnx

            difference = export_onnx(model, folder / "model.onnx")
        run = RunDirectory(artifact_folder.parent)
        if (run.path / "run.json").is_file():
            card = model_card(run, artifact_folder.name, model.config.to_dict(), onnx=onnx)
            write_text(folder / "README.md", card)
    return Shipped(sum(p.numel() for p in model.parameters()), difference)


def _check_target(to: Path) -> None:
    """Only an empty folder or an older export may be replaced."""
    if to.is_symlink():
        raise RunError(
            f"{to} is a link",
            expected="a folder, or a name that is free",
            remedy=f"--to {to.resolve()}, or remove the link",
        )
    if not to.exists() or (to.is_dir() and not any(to.iterdir())):
        return
    if _is_export(to / "config.json"):
        return
    raise RunError(
        f"{to} exists and is not an export of d2cp",
        expected="a new folder, an empty one, or an older export",
        remedy="choose another --to",
    )


def _is_export(config: Path) -> bool:
    try:
        found = read_json(config) if config.is_file() else None
    except RunError:
        return False
    kind = D2CPClassifierConfig.model_type
    return isinstance(found, dict) and found.get("model_type") == kind
