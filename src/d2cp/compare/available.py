"""What can run, told before anything long starts: methods, backbone, sizes, splits, the rule."""

from __future__ import annotations

from collections.abc import Sequence

from d2cp.backbone import load_backbone
from d2cp.backbone.text_tower import has_text_encoder
from d2cp.compare.contract import Spec, Tier
from d2cp.config import Config
from d2cp.config.debias import DebiasConfig
from d2cp.data.table import Table
from d2cp.errors import ConfigError, DataError


def obstacle(spec: Spec, *, tier: Tier, table: Table, text: bool) -> str:
    """Why a method cannot run here; empty when it can."""
    if tier not in spec.tiers:
        return "it works on the pixels themselves, and this is the features tier"
    if spec.needs_groups and table.a is None:
        return f"it needs group labels, and {table.name!r} has none (--groups mined finds some)"
    if "text" in spec.needs and not text:
        return "it needs a text encoder, and the backbone has none (a whole CLIP has)"
    return ""


def runnable(
    specs: Sequence[Spec], *, tier: Tier, table: Table, backbone: str, named: bool
) -> tuple[list[Spec], dict[str, str]]:
    """The methods that can run, and the others with the reason; one `named` by the user that
    cannot is an error."""
    text = has_text_encoder(backbone) if any("text" in spec.needs for spec in specs) else False
    skipped: dict[str, str] = {}
    for spec in specs:
        if reason := obstacle(spec, tier=tier, table=table, text=text):
            if named:
                raise ConfigError(
                    f"{spec.title} cannot run: {reason}",
                    remedy=f"leave {spec.name!r} out of --methods",
                )
            skipped[spec.name] = reason
    return [spec for spec in specs if spec.name not in skipped], skipped


def check_start(config: Config, table: Table) -> None:
    """Faults that would otherwise show after minutes: the backbone, sizes, splits, the rule."""
    _require_whole_method(config.debias)
    side = config.debias.image_size
    load_backbone(config.backbone).grid(side, side)
    for split in ("train", "val", "test"):
        if not len(table.rows(split)):
            raise DataError(
                f"{table.name!r} has no images in split {split!r}",
                expected="images to train on, to validate on and to test on",
                remedy="see `d2cp check` for the counts that were found",
            )
    if config.debias.selection == "val_true_groups" and table.a is None:
        raise DataError(
            f"--selection val_true_groups, and {table.name!r} has no attribute column",
            remedy="use --selection val_pseudo_groups, or add an attribute column",
        )


def _require_whole_method(config: DebiasConfig) -> None:
    """A comparison runs D2CP whole: a setting that it would have to ignore is refused."""
    plain = DebiasConfig()
    for name in ("use_pseudo", "dual_branch", "use_xrm", "pseudo_source", "recolour"):
        if getattr(config, name) != getattr(plain, name):
            raise ConfigError(
                f"debias.{name} = {getattr(config, name)!r} in a comparison",
                expected=f"{getattr(plain, name)!r}: other forms are settings of `d2cp run`",
                remedy=f"leave debias.{name} out, or use d2cp run with it",
            )
