"""What a table would take, before anything runs: cells, what they share, passes, disk, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from d2cp.core.run_directory import RunDirectory
from d2cp.data.fetch.catalogue import CATALOGUE
from d2cp.data.images import UnreadableError
from d2cp.data.source import FileSource
from d2cp.data.table import Table
from d2cp.reproduce.calibration import Pace
from d2cp.reproduce.cells import SEEDS, Cell, DataSet

SHARED = ("data", "disentangle", "mine", "features", "environments")
FEATURE_WIDTH = 768  # of ViT-B; the embedded backbone and ViT-S have less
BRANCHES = 2


def missing_images(table: Table) -> list[str]:
    """Files that the table names and the disk does not have."""
    source = table.source
    if not isinstance(source, FileSource):
        return []
    absent = []
    for row in range(len(source)):
        try:
            source.stamp(row)
        except UnreadableError:
            absent.append(str(table.ids[row]))
    return absent


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is left to do for one data set."""

    data: DataSet
    cells: tuple[Cell, ...]
    left: tuple[Cell, ...]
    seeds: tuple[int, ...]  # whose shared stages are not all there
    passes: int
    looks: int
    bytes: int
    missing: tuple[str, ...]


def images_of(data: DataSet) -> Mapping[str, int]:
    """Images of each split after the limits of the configuration."""
    config, table = data.config, data.table
    own = {"train": config.train_limit, "val": config.val_limit}
    counts = {name: len(table.rows(name)) for name in table.split_names}
    limits = {name: own.get(name, config.test_limit) for name in counts}
    return {name: min(n, limits[name] or n) for name, n in counts.items()}


def passes_of(cell: Cell) -> int:
    """Images through a trained branch, forth and back, over the whole training of a cell."""
    debias = cell.config.debias
    images = debias.epoch_size or images_of(cell.data)["train"]
    shown = debias.epochs * images
    if cell.row.kind == "method":  # here an equal number of passes, in the paper equal epochs
        two = cell.data.scale == "here" or cell.row.key == "d2cp"
        return (BRANCHES if two else 1) * shown
    if cell.row.kind in ("recall", "concepts"):
        return 0
    on_features = debias.tier == "features"
    tries = 1 + debias.feature_draws if on_features else 1
    solved = on_features and debias.spurious_fit == "solved"  # takes no pass
    return tries * shown * (BRANCHES if debias.dual_branch and not solved else 1)


def looks_of(cell: Cell) -> int:
    """Images through the frozen network in a cell's evaluations; none on frozen features."""
    debias, images = cell.config.debias, images_of(cell.data)
    if debias.tier == "features" or not passes_of(cell):
        return 0
    epoch = debias.epoch_size or images["train"]
    per_epoch = max(1, epoch // debias.batch_size)
    evaluations = debias.epochs * per_epoch // (debias.evaluate_every or per_epoch)
    scored = sum(n for name, n in images.items() if name.startswith("test"))
    return evaluations * images.get("val", 0) + scored


def feature_sets(data: DataSet, seeds: Sequence[int]) -> int:
    """How often the features of all images are still to be made for these seeds: once, unless a
    seed draws its own images, and not where a seed has them."""
    config = data.config
    if config.train_limit or config.val_limit or config.test_limit:
        return len(seeds)
    known = (data.folder / SEEDS).glob("*/features/manifest.json")
    return 0 if any(known) else min(1, len(seeds))


def bytes_of_features(data: DataSet) -> int:
    """In float32."""
    return 4 * sum(images_of(data).values()) * FEATURE_WIDTH


def bytes_of_seed(data: DataSet) -> int:
    """Concepts of every image, in float32."""
    config = data.config.disentangle
    return 4 * sum(images_of(data).values()) * config.concepts * (1 + config.tokens.dim)


def bytes_of_cache(data: DataSet) -> int:
    """Decoded images at the sizes of both stages."""
    sides = {data.config.disentangle.size, data.config.debias.resize}
    return sum(3 * side * side * len(data.table) for side in sides)


def work(cells: Sequence[Cell]) -> list[Work]:
    made = []
    for data in {cell.data.name: cell.data for cell in cells}.values():
        own = [cell for cell in cells if cell.data is data]
        left = {cell.identity: cell for cell in own if cell.finished() is None}
        trained = [
            cell
            for cell in left.values()
            if cell.row.kind != "saliency" or cell.training.finished() is None
        ]
        seeds = sorted({c.seed for c in left.values() if not shared_is_there(data, c.seed)})
        sets = feature_sets(data, seeds)
        made.append(
            Work(
                data=data,
                cells=tuple(own),
                left=tuple(left.values()),
                seeds=tuple(seeds),
                passes=sum(passes_of(cell) for cell in trained),
                looks=sum(looks_of(cell) for cell in trained)
                + sets * sum(images_of(data).values()),
                bytes=bytes_of_cache(data)
                + len(seeds) * bytes_of_seed(data)
                + sets * bytes_of_features(data),
                missing=tuple(missing_images(data.table)),
            )
        )
    return made


def shared_is_there(data: DataSet, seed: int) -> bool:
    """Whether the run of a seed has all stages that cells share; that they are current is found
    out when they are used."""
    run = RunDirectory(data.folder / SEEDS / str(seed))
    return all(run.has(stage) for stage in SHARED)


def seconds(one: Work, pace: Pace) -> float:
    """Trainings, evaluations, features, concept steps; mining and XRM are little beside them."""
    return one.passes * pace.a_pass + one.looks * pace.a_look + len(one.seeds) * pace.concept_steps


def told(one: Work, pace: Pace | None) -> list[str]:
    """The plan of a data set in lines."""
    data = one.data
    rows = dict.fromkeys(cell.row.key for cell in one.cells)
    seeds = dict.fromkeys(cell.seed for cell in one.cells)
    lines = [
        f"{data.name}: {len(rows)} rows x {len(seeds)} seeds, preset {data.config.preset}, "
        f"{data.config.debias.tier} over {data.config.backbone}",
        *_absent(one),
        f"  cells: {len(one.cells)}, of which {len({c.identity for c in one.cells})} are different "
        f"and {len(one.left)} are left to run" + (":" if one.left else ""),
        *_left(one),
        "  shared by the cells of a seed: stage 1, pseudo labels, XRM's bits, and by all seeds: "
        f"features; to be made for {len(one.seeds)} of {len(seeds)} seeds",
        f"  images through the network: {one.passes:,} forth and back (training), {one.looks:,} "
        "forth alone (features, validation, test)",
        f"  disk: {one.bytes / 2**30:.1f} GiB",
    ]
    if pace is not None:
        lines.append(
            f"  time: about {_duration(seconds(one, pace))} on this machine (measured: "
            f"{1000 * pace.a_pass:.1f} ms a pass, {1000 * pace.a_look:.1f} ms a look, "
            f"{_duration(pace.concept_steps)} for stage 1 of a seed)"
        )
        if pace.note:
            lines.append(f"  {pace.note}")
    return lines


def _absent(one: Work) -> list[str]:
    """What is missing, and where it could come from: without it no cell can run."""
    if not one.missing:
        return []
    data, count = one.data, len(one.missing)
    root = getattr(data.table.source, "root", data.place.data)
    every = "all" if count == len(data.table) else f"{count:,} of"
    lines = [
        f"  MISSING: {every} {len(data.table):,} images below {root}, the first: {one.missing[0]}"
    ]
    if data.benchmark in CATALOGUE:
        lines.append(f"    d2cp fetch {data.benchmark} DIR brings them, where there is a network")
    return lines


def _left(one: Work) -> list[str]:
    """The cells that are left, one line a row of the table."""
    by_row: dict[str, list[int]] = {}
    for cell in one.left:
        by_row.setdefault(cell.row.key, []).append(cell.seed)
    return [
        f"    {one.data.name}/{row}/{seeds[0] if len(seeds) == 1 else _braces(seeds)}"
        for row, seeds in by_row.items()
    ]


def _braces(seeds: Sequence[int]) -> str:
    return "{" + ",".join(map(str, seeds)) + "}"


def _duration(amount: float) -> str:
    if amount < 120:
        return f"{amount:.0f} s"
    if amount < 7200:
        return f"{amount / 60:.0f} min"
    if amount < 48 * 3600:
        return f"{amount / 3600:.1f} h"
    days = amount / 86400
    return f"{days:.0f} days" if days < 730 else f"{days / 365:.0f} years"
