"""Stage 2: the dual-branch model, and beside it the ERM control with the same budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from d2cp.backbone import load_backbone
from d2cp.backbone.identity import backbone_key
from d2cp.config.debias import DebiasConfig
from d2cp.core.arrays import UNKNOWN, Floats
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.metrics_log import MetricsLog
from d2cp.core.processes import from_main, is_main
from d2cp.core.progress import progress
from d2cp.data.store import ImageStore
from d2cp.debias.cross_fit import Fold, folds_of, held_out, joined, solved
from d2cp.debias.evidence import Evidence, evidence, save_evidence, search_held_out
from d2cp.debias.labels import Labels, selection_used, with_validation
from d2cp.debias.settings_search import Draw, draw_settings, drawn_names, search
from d2cp.debias.soft_values import value_shares
from d2cp.debias.train import Trained, plain, train_d2cp, train_on_features
from d2cp.debias.trained_files import Artifact, load_artifact, save_artifact
from d2cp.debias.transplants import Transplants
from d2cp.debias.twins import TwinStore, with_twins
from d2cp.pipeline.context import Context
from d2cp.pipeline.discovered import Discovery
from d2cp.pipeline.environment_bits import Bits
from d2cp.pipeline.frozen_features import load_features
from d2cp.pipeline.pseudo_source import pseudo_attribute
from d2cp.pipeline.recolouring import load_recolouring

Which = Literal["erm", "debias"]


def labels_of(context: Context, found: Discovery, bits: Bits) -> Labels:
    """The columns stage 2 may use. True attributes are in them only where the configuration
    asks for them by name: the selection rule `val_true_groups`, or `pseudo_source = "true"`."""
    config, table = context.config.debias, context.table
    wants_truth = selection_used(config) == "val_true_groups"
    pseudo = pseudo_attribute(context, found)
    return Labels(
        y=_without_test(context, table.y),
        classes=table.n_classes,
        train=table.rows("train"),
        val=table.rows("val"),
        a=pseudo.labels,
        values=pseudo.values,
        shares=_shares(context, found),
        y_xrm=bits.y,
        a_xrm=bits.a,
        true_a=table.a if wants_truth else None,
    )


def _shares(context: Context, found: Discovery) -> Floats | None:
    config, table = context.config.debias, context.blind
    if config.tier != "features" or not config.soft_values or config.pseudo_source != "cbcm":
        return None
    train, val = table.rows("train"), table.rows("val")
    return value_shares(found.score, found.pseudo, table.y, train, val, table.n_classes)


def control_labels(context: Context) -> Labels:
    """The columns of the control: classes, and no finding."""
    config, table = settings_of("erm", context.config.debias), context.table
    return Labels(
        y=_without_test(context, table.y),
        classes=table.n_classes,
        train=table.rows("train"),
        val=table.rows("val"),
        true_a=table.a if selection_used(config) == "val_true_groups" else None,
    )


def _without_test(context: Context, y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels of rows that are neither train nor val are unknown: nothing can select on them."""
    table = context.table
    known = np.zeros(len(y), dtype=bool)
    known[table.rows("train")] = known[table.rows("val")] = True
    return np.where(known, y, UNKNOWN)


def settings_of(which: Which, config: DebiasConfig) -> DebiasConfig:
    """The control is plain training: the mined groups do not choose its state either."""
    if which == "debias":
        return config
    if config.selection == "val_pseudo_groups":
        config = replace(config, selection="val_worst_class")
    return plain(config)


def train(
    context: Context,
    which: Which,
    labels: Labels,
    *,
    control: Artifact | None = None,
    transplants: Transplants | None = None,
) -> Artifact:
    """The model of a stage; on frozen features with `transplants` among what it trains on, and with
    evidence of how it does beside `control`."""
    settings = settings_of(which, context.config.debias)
    without = {"transplants"} if transplants is None else set()
    inputs = _inputs(context, which, settings, control, without)

    def make(folder: Path) -> None:
        checkpointer = context.checkpointer(which, inputs)
        trained, draws, found = fit_model(
            context, which, labels, settings, checkpointer, context.log, control, transplants
        )
        context.say(f"{which}: trainable parameters, {trained.parameters}")
        save_artifact(folder, artifact_of(context, labels, trained, draws))
        if found is not None:
            save_evidence(folder, found)

    return load_artifact(context.stage(which, inputs, make))


def _inputs(
    context: Context,
    which: Which,
    settings: DebiasConfig,
    control: Artifact | None,
    without: set[str],
) -> str:
    """On frozen features a model without a control lacks the evidence of one: it is made again when
    the control is wanted later; one that has it serves either."""
    inputs = context.inputs(which, without=without)
    if which == "erm" or control is not None or settings.tier != "features":
        return inputs
    whole = from_main(context.run.is_current(which, inputs) if is_main() else None)
    return inputs if whole else context.inputs(which, "no control", without=without)


def fit_model(
    context: Context,
    which: Which,
    labels: Labels,
    settings: DebiasConfig,
    checkpointer: Checkpointer,
    log: MetricsLog | None = None,
    control: Artifact | None = None,
    transplants: Transplants | None = None,
) -> tuple[Trained, list[Draw], Evidence | None]:
    """Prompts as `settings` say, or, on frozen features, the best of a search, what it tried, and
    how such a choice does beside the control's."""
    if settings.tier == "features":
        return _search(context, which, labels, settings, control, transplants)
    store = context.images(settings.resize)
    if settings.recolour:
        store, labels = _recoloured(context, store, labels)
    trained = train_d2cp(
        load_backbone(context.config.backbone, settings.keep_patches),
        store,
        labels,
        settings,
        seed=context.config.seed,
        stage=which,
        checkpointer=checkpointer,
        log=log,
        quiet=context.quiet,
    )
    return trained, [], None


def _recoloured(context: Context, store: ImageStore, labels: Labels) -> tuple[ImageStore, Labels]:
    """Images and labels with twins in the other value's colours, where there are such colours."""
    found = load_recolouring(context.run.path / "mine")
    if found is None or labels.a is None:
        context.say("debias: not recoloured, stage 1 has no concept of two values of its own")
        return store, labels
    context.say(f"debias: {found.sentence()}")
    if not found.works:
        return store, labels
    return TwinStore(store, labels.a, found.maps), with_twins(labels)


def artifact_of(
    context: Context, labels: Labels, trained: Trained, draws: Sequence[Draw]
) -> Artifact:
    """The model with the names it speaks of."""
    values = () if labels.a is None else tuple(f"value {v}" for v in range(labels.values))
    crop = getattr(context.table.source, "centre_crop", None)
    backbone = context.config.backbone
    key, names = backbone_key(backbone), context.table.class_names
    return Artifact(trained, backbone, names, values, crop, tuple(draws), key)


def _search(
    context: Context,
    which: Which,
    labels: Labels,
    settings: DebiasConfig,
    control: Artifact | None,
    transplants: Transplants | None,
) -> tuple[Trained, list[Draw], Evidence | None]:
    """The control gets as many draws as the method."""
    seed = context.config.seed
    features = load_features(context.run.path / "features")
    if transplants is not None:
        features = transplants.behind(features)
    size = load_backbone(context.config.backbone).parameter_count
    names = drawn_names(settings)
    drawn = draw_settings(settings, settings.feature_draws, names, seed=seed)
    folds = [Fold(labels.train, labels.val)]
    if settings.use_pseudo:
        folds = folds_of(labels, settings.feature_folds, seed=seed)
        folds = solved(folds, features, labels, settings, seed=seed, more=transplants)
        _say_directions(context, which, folds[0])

    def train_one(config: DebiasConfig, refit: bool = False) -> Trained:
        return train_on_features(
            features,
            joined(with_validation(labels) if refit else labels, transplants),
            config,
            seed=seed,
            backbone_parameters=size,
            stage=which,
            solution=None if refit else folds[0].solution,
        )

    with progress(len(drawn), which, quiet=context.quiet) as bar:

        def step() -> None:
            bar.step(sum(len(fold.train) for fold in folds))

        if not _by_held_out(settings, folds):
            return *search(drawn, names, train_one, step=step), None
        found, config, draws = search_held_out(
            features, labels, folds, drawn, names, seed=seed, step=step, more=transplants
        )
        trained = train_one(config, settings.refit and _has_test(context))
    if control is None:
        return trained, draws, None
    if transplants is not None:  # plain training does not learn from them, and answers for them
        count = len(labels.y)
        folds = [replace(fold, held=transplants.held(fold.held, count)) for fold in folds]
    plainly = held_out(features, labels, folds, [control.trained.config], seed=seed)
    return trained, draws, evidence(plainly, found, labels, transplants)


def _by_held_out(settings: DebiasConfig, folds: Sequence[Fold]) -> bool:
    """Whether held-out answers choose: true groups are known of validation images alone, and XRM's
    groups without mined ones are another rule."""
    if settings.feature_folds == 0 or settings.selection == "val_true_groups":
        return False
    if settings.use_xrm and not settings.use_pseudo:
        return False
    return sum(len(fold.held) for fold in folds) > 0


def _has_test(context: Context) -> bool:
    """Whether figures can be made on other images than those of training and validation."""
    return bool(set(context.table.split_names) - {"train", "val"})


def _say_directions(context: Context, which: Which, fold: Fold) -> None:
    if fold.solution is not None:
        read = ", ".join(f"{100 * share:.0f}%" for share in fold.solution.read)
        context.say(
            f"{which}: {fold.solution.kept} spurious directions removed; held-out images read by "
            f"one after another: {read}"
        )
