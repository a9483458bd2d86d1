"""What all methods of one seed share: images, frozen features, mined pseudo attributes.

The stages are those of `d2cp run`, in a run directory of the seed's own, so they are computed once
and resumed; only methods that declared `pseudo` (or the rule that needs it) cause discovery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from d2cp.backbone import load_backbone
from d2cp.backbone.text_tower import class_text
from d2cp.compare.footing import Footing
from d2cp.compare.registry import method
from d2cp.compare.task import Pseudo
from d2cp.compare.tiers import FeatureSpace, PromptSpace, Space
from d2cp.core.device import process_state
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovery import discover
from d2cp.pipeline.environment_bits import environments
from d2cp.pipeline.frozen_features import features
from d2cp.pipeline.opening import open_run

if TYPE_CHECKING:
    from d2cp.compare.grid import Grid

Say = Callable[[str], None]


@contextmanager
def open_seed(grid: Grid, seed: int, names: Sequence[str]) -> Iterator[tuple[Footing, Say]]:
    """The footing of the methods `names` for a seed. Its run directory is locked while what they
    share is made, so that cells of a seed can run in many places at once."""
    config = grid.settings(seed)
    table = grid.place.table()
    out = grid.out / "seeds" / str(seed)
    with open_run(
        table, out, config, cache_dir=grid.cache_dir, force=grid.force, quiet=grid.quiet, wait=True
    ) as context:
        needs = {need for name in names for need in method(name).spec.needs}
        asked = config.debias.selection == "val_pseudo_groups" or "pseudo" in needs
        images = len(context.table.rows("train"))
        footing = Footing(
            table=context.table,
            space=space_of(context, grid),
            config=replace(config.debias, use_pseudo=True, use_xrm=True, dual_branch=True),
            seed=seed,
            budget=grid.epochs * images if grid.epochs else grid.budget,
            equal="epochs" if grid.epochs else "passes",
            environments=config.environments,
            mined=mine(context) if asked else None,
            text=class_text(config.backbone, table.class_names) if "text" in needs else None,
            quiet=grid.quiet,
        )
    yield footing, context.say


def mine(context: Context) -> Pseudo:
    """The discover stage and XRM's bits, as `d2cp run` makes them."""
    found = discover(context)
    bits = environments(context, found)
    return Pseudo(found.pseudo, found.values, found.score, bits.y, bits.a)


def space_of(context: Context, grid: Grid) -> Space:
    config = context.config
    frozen, device = features(context), process_state().device
    if grid.tier == "features":
        train = context.table.rows("train")
        return FeatureSpace(frozen, config.debias, train=train, device=device)
    return PromptSpace(
        load_backbone(config.backbone, config.debias.keep_patches),
        context.images(config.debias.resize),
        frozen,
        config.debias,
        seed=config.seed,
        device=device,
    )
