"""The readers of files that come from elsewhere, each as: make good examples, change one, read it.

A reader is handed a folder of its own with the good files, and a generator. It returns quietly or
raises one of the package's own errors; everything else is a fault.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from d2cp.config import load_config
from d2cp.config.whole import config_from_dict
from d2cp.core.checkpoint import Checkpointer
from d2cp.core.files import write_csv, write_json
from d2cp.core.records import CellRecord, ReproducedCell
from d2cp.core.run_directory import RunDirectory
from d2cp.core.sealed import SEAL, read_sealed, write_sealed
from d2cp.data import load_table
from d2cp.data.images import UnreadableError, decode, to_square
from d2cp.debias.trained_files import load_artifact
from d2cp.disentangle.concept_files import load_concepts, load_model
from d2cp.evaluate.prediction_file import read_predictions
from d2cp.mine.mined_files import load_mined
from d2cp.pipeline.corrections import load_corrections
from d2cp.pipeline.frozen_features import load_features
from d2cp.scan.scan_files import load_scan
from d2cp.scan.scanned_rows import ScannedRows
from fuzz_archives import prepare_archives, read_archive
from mutations import mutate_bytes, mutate_json, mutate_value

Reader = Callable[[Path, random.Random], None]
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


def prepare_images(folder: Path, _: Path) -> None:
    draw = np.random.default_rng(0)
    for mode, channels in (("RGB", 3), ("L", 1), ("RGBA", 4), ("LA", 2), ("1", 1)):
        shape = (24, 20) if channels == 1 else (24, 20, channels)
        image = Image.fromarray(draw.integers(0, 255, shape).astype(np.uint8), None)
        if mode == "1":
            image = image.convert("1")
        for kind in FORMATS:
            try:
                image.save(folder / f"{mode}.{kind}", format=kind)
            except (OSError, ValueError):
                continue
    first = Image.fromarray(draw.integers(0, 255, (24, 20, 3)).astype(np.uint8))
    more = [first.rotate(90 * k) for k in range(3)]
    first.save(folder / "moving.GIF", save_all=True, append_images=more)
    first.save(folder / "pages.TIFF", save_all=True, append_images=more, compression="tiff_lzw")
    first.save(folder / "scans.JPEG", progressive=True)


def read_image(folder: Path, draw: random.Random) -> None:
    data = draw.choice(_files(folder)).read_bytes()
    image = decode(mutate_bytes(data, draw))
    to_square(image, 16)


def prepare_table(folder: Path, _: Path) -> None:
    """Images in `data/`, and one outside of it that no metadata may reach."""
    (folder / "data").mkdir()
    rows = []
    for index in range(12):
        name = f"{index}.png"
        Image.new("RGB", (4, 4), (index * 20, 0, 0)).save(folder / "data" / name)
        rows.append((name, ("train", "val", "test")[index % 3], index % 2, index // 6))
    Image.new("RGB", (4, 4)).save(folder / "secret.png")
    write_csv(folder / "good.csv", ("filename", "split", "y", "a"), rows)


def read_table(folder: Path, draw: random.Random) -> None:
    text = mutate_bytes((folder / "good.csv").read_bytes(), draw)
    if draw.random() < 0.3:
        place = draw.choice((b"../secret.png", b"/etc/passwd", b"data/../../secret.png"))
        text = text.replace(b"3.png", place)
    (folder / "data" / "metadata.csv").write_bytes(text)
    table = load_table(folder / "data")
    for row in range(len(table)):
        try:
            table.source.read(row)  # type: ignore[attr-defined]
        except UnreadableError:
            continue


def prepare_settings(folder: Path, _: Path) -> None:
    text = (Path(load_config.__code__.co_filename).parent / "presets" / "demo.toml").read_bytes()
    (folder / "good.toml").write_bytes(text)
    write_json(folder / "good.json", load_config("demo").to_dict())


def read_settings(folder: Path, draw: random.Random) -> None:
    """A person's TOML file; a nested dictionary; one assignment."""
    kind = draw.random()
    if kind < 0.4:
        path = folder / "settings.toml"
        path.write_bytes(mutate_bytes((folder / "good.toml").read_bytes(), draw))
        load_config("demo", file=path)
    elif kind < 0.8:
        config_from_dict(mutate_value(json.loads((folder / "good.json").read_text()), draw))
    else:
        text = mutate_bytes(b"disentangle.unet.channels=[32, 64]", draw)
        load_config("demo", assignments=[text.decode("utf-8", "replace")])


def prepare_corrections(folder: Path, _: Path) -> None:
    flip = {f"{k}.png": k % 2 for k in range(8)}
    good = {"schema": 1, "data": "abc", "concepts_are_class": [1, 3], "flip": flip}
    write_json(folder / "good.json", good)


def read_corrections(folder: Path, draw: random.Random) -> None:
    path = folder / "corrections.json"
    path.write_bytes(mutate_json((folder / "good.json").read_bytes(), draw))
    found = load_corrections(path)
    ids = [f"{k}.png" for k in range(20)]
    found.check(fingerprint="abc", ids=ids, concepts=6)
    found.flipped(np.zeros(20, np.int64), ids, 2)


def prepare_manifest(folder: Path, run: Path) -> None:
    shutil.copytree(run / "data", folder / "run" / "data")
    shutil.copy(run / "run.json", folder / "run" / "run.json")
    shutil.copytree(folder / "run", folder / "good")


def read_manifest(folder: Path, draw: random.Random) -> None:
    name = draw.choice(("run.json", "data/manifest.json", "data/manifest.json"))
    good = folder / "good" / name
    (folder / "run" / name).write_bytes(mutate_json(good.read_bytes(), draw))
    run = RunDirectory.open(folder / "run")
    try:
        assert run.description is not None
        run.is_current("data", "x")
        run.damage("data")
        run.start({"version": "1", "data": {"name": "d"}, "config": {"seed": 1}}, settled=["seed"])
    finally:
        shutil.copy(good, folder / "run" / name)


def prepare_predictions(folder: Path, _: Path) -> None:
    rows = [(f"{k}.png", ("cat", "dog")[k % 2], 0.25, 0.75) for k in range(20)]
    write_csv(folder / "good.csv", ("image", "prediction", "p0", "p1"), rows)
    shares = [(name, low, high) for name, _, low, high in rows]
    write_csv(folder / "shares.csv", ("image", "cat", "dog"), shares)


def read_prediction_file(folder: Path, draw: random.Random) -> None:
    path = folder / "predictions.csv"
    good = draw.choice(("good.csv", "shares.csv"))
    path.write_bytes(mutate_bytes((folder / good).read_bytes(), draw))
    read_prediction_file_at(path, draw.choice((None, "prediction", "none")))


def read_prediction_file_at(path: Path, column: str | None) -> None:
    ids = [f"{k}.png" for k in range(20)]
    y = np.arange(20, dtype=np.int64) % 2
    read_predictions(path, ScannedRows(ids, y, np.zeros(20, np.int8), ("cat", "dog")), column)


ARTIFACTS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "mine": (load_mined, ("mined.json", "mined.safetensors")),
    "disentangle": (load_concepts, ("concepts.safetensors",)),
    "features": (load_features, ("features.safetensors",)),
    "debias": (load_artifact, ("debias.json", "model.safetensors")),
    "scan": (load_scan, ("findings.json", "scan.safetensors")),
}


def prepare_tensors(folder: Path, run: Path) -> None:
    import torch

    for stage in ARTIFACTS:
        if (run / stage).is_dir():
            shutil.copytree(run / stage, folder / stage)
    saved = Checkpointer(folder / "checkpoints", identity="x", every_steps=1)
    for step in (1, 2):
        saved.save(step, {"w": torch.arange(6.0).reshape(2, 3)}, {"rng": [1, 2]})


def read_tensors(folder: Path, draw: random.Random) -> None:
    """One file of a stage changed, its stage read; or a checkpoint, which steps back instead."""
    stages = [stage for stage in ARTIFACTS if (folder / stage).is_dir()]
    stage = draw.choice([*stages, "checkpoints"])
    if stage == "checkpoints":
        path = folder / stage / "step-000000002.safetensors"
    else:
        path = folder / stage / draw.choice(ARTIFACTS[stage][1])
    good = path.read_bytes()
    change = mutate_json if path.suffix == ".json" else mutate_header
    path.write_bytes(change(good, draw))
    try:
        if stage == "checkpoints":
            found = Checkpointer(folder / stage, identity="x").load()
            assert found is not None and found.step in (1, 2)
        else:
            ARTIFACTS[stage][0](folder / stage)
    finally:
        path.write_bytes(good)


def mutate_header(data: bytes, draw: random.Random) -> bytes:
    """A safetensors file: mostly its JSON header, with the length kept true or not."""
    size = int.from_bytes(data[:8], "little")
    if draw.random() < 0.3:
        return mutate_bytes(data, draw)
    header = mutate_json(data[8 : 8 + size], draw)
    told = len(header) if draw.random() < 0.8 else draw.choice((0, 2**40, 2**63, len(data)))
    return told.to_bytes(8, "little") + header + data[8 + size :]


def prepare_cells(folder: Path, _: Path) -> None:
    names = {"method": "erm", "seed": 0, "split": "test", "selection": "val_worst_class"}
    shares = {"grouping": "true", "worst_group": 0.5, "mean": 0.9, "train_weighted_mean": 0.9}
    groups = {"0,1": {"name": "cat, red", "n": 20, "accuracy": 0.5}}
    results = [{**names, **shares, "intervals": {"mean": [0.8, 1.0]}, "groups": groups}]
    figures = {"split": "test", "figures": {"worst_group": 0.5, "mean": 0.9}, "key": "a"}
    about = {"identity": "x", "seconds": 1.5, "results": results}
    picture = {"file": "swap.png", "title": "Swap"}
    facts = {"tier": "features", "trainable": 3, "passes": 60, "params": {"lr": 0.1}}
    notes = {"group_labels": ["val"], "mined_groups": False, "notes": []}
    write_sealed(folder / "cell.json", {**about, "lines": [figures], "pictures": [picture]})
    write_sealed(folder / "erm-0.json", {**about, **facts, **notes})


def read_cells(folder: Path, draw: random.Random) -> None:
    """A cell of `reproduce` or of `compare`, half of the time with a digest that fits."""
    name, form = draw.choice((("cell.json", ReproducedCell), ("erm-0.json", CellRecord)))
    data = mutate_json((folder / name).read_bytes(), draw)
    path = folder / "changed.json"
    path.write_bytes(data)
    if draw.random() < 0.5:
        try:
            content = json.loads(data)
            content.pop(SEAL)
            write_sealed(path, content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            path.write_bytes(data)
    found = read_sealed(path, form, remedy="delete it")
    assert all(isinstance(line["split"], str) for line in found.get("lines", []))


def prepare_model(folder: Path, run: Path) -> None:
    stage = run / "disentangle"
    shutil.copytree(stage, folder / "model", ignore=shutil.ignore_patterns("concepts*"))


def read_model(folder: Path, draw: random.Random) -> None:
    path = folder / "model" / "model.json"
    good = path.read_bytes()
    path.write_bytes(mutate_json(good, draw))
    try:
        load_model(folder / "model")
    finally:
        path.write_bytes(good)


def prepare_backbone(folder: Path, _: Path) -> None:
    from d2cp.backbone.load import EMBEDDED_FOLDER

    shutil.copytree(EMBEDDED_FOLDER, folder / "backbone")


def read_backbone(folder: Path, draw: random.Random) -> None:
    from d2cp.backbone import load_backbone

    names = [p for p in (folder / "backbone").iterdir() if p.suffix in (".json", ".safetensors")]
    path = draw.choice(sorted(names))
    good = path.read_bytes()
    change = mutate_json if path.suffix == ".json" else mutate_header
    path.write_bytes(change(good, draw))
    try:
        load_backbone(folder / "backbone").grid(28, 28)
    finally:
        path.write_bytes(good)


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file())


READERS: dict[str, tuple[Callable[[Path, Path], None], Reader, int]] = {
    # name: preparation, reader, share of the inputs in thousandths
    "images": (prepare_images, read_image, 360),
    "metadata": (prepare_table, read_table, 150),
    "settings": (prepare_settings, read_settings, 150),
    "corrections": (prepare_corrections, read_corrections, 100),
    "manifest": (prepare_manifest, read_manifest, 90),
    "predictions": (prepare_predictions, read_prediction_file, 60),
    "tensors": (prepare_tensors, read_tensors, 45),
    "cells": (prepare_cells, read_cells, 20),
    "archives": (prepare_archives, read_archive, 20),
    "model": (prepare_model, read_model, 3),
    "backbone": (prepare_backbone, read_backbone, 2),
}
