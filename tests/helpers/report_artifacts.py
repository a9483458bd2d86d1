"""Run directories as the pipeline writes them, with figures made up from a known rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from d2cp.compare.comparison import comparison
from d2cp.config import load_config
from d2cp.core.files import write_csv, write_json
from d2cp.core.run_directory import RunDirectory
from d2cp.data import load_table
from d2cp.data.table import SPLIT_NAMES, Table
from d2cp.evaluate.columns import figures
from d2cp.evaluate.metrics import GroupAccuracy
from d2cp.evaluate.result import score

OVERRIDES = {"seed": 3, "debias": {"epochs": 2}}


def write_run(
    path: Path, table: Table, *, place: str | None = None, audit: bool = False, gradcam: int = 4
) -> RunDirectory:
    """A run on `table`, whose attribute stands for what mining finds; `audit` stops after it."""
    run = RunDirectory(path)
    described = {"name": table.name, "fingerprint": table.fingerprint()}
    if place is not None:
        described["path"] = place
    run.start(
        {
            "config": load_config("demo", overrides=OVERRIDES).to_dict(),
            "data": described,
            "version": "0.1.0",
        }
    )
    packages = {"torch": "2.13.0", "numpy": "2.3.1"}
    write_json(
        path / "environment.json",
        {"d2cp": "0.1.0", "machine": "2 CPU cores, no accelerator", "packages": packages},
    )
    generator = np.random.default_rng(0)
    assert table.a is not None
    noise = generator.normal(size=len(table))
    scores = 2.2 * (2 * (table.a == table.a.max()) - 1) + 0.75 * noise
    pseudo = (scores > 0).astype(np.int64) if table.n_values == 2 else table.a.copy()
    _data(run, table)
    _mine(run, table, pseudo, scores)
    if audit:
        return run
    lazy = pseudo if table.n_values == 2 and table.n_classes == 2 else pseudo % table.n_classes
    lazy = 1 - lazy if table.n_classes == 2 and (lazy == table.y).mean() < 0.5 else lazy
    before = np.where(generator.random(len(table)) < 0.93, lazy, table.y)
    slips = (table.y + 1) % table.n_classes
    after = np.where(generator.random(len(table)) < 0.95, table.y, slips)
    with run.writing("environments", "fixture") as folder:
        write_json(folder / "summary.json", {"y": {"flip_rate": 0.012}, "a": {"flip_rate": 0.31}})
    _evaluate(run, table, pseudo, before, after, generator, gradcam)
    return run


HOSTILE_CLASSES = ("<img src=x onerror=alert(1)>", '</script><script>alert("2")</script>')
HOSTILE_FILE = "\u202egnp.\"'><b onmouseover=alert(3)>&amp; {{ 7 * 7 }}.png"


def write_hostile_run(path: Path) -> RunDirectory:
    """A data set whose classes, attributes and files have names that try to be markup."""
    images = path.parent / "hostile-images"
    images.mkdir()
    rows = []
    generator = np.random.default_rng(1)
    for index in range(48):
        split = ("train", "val", "test")[index % 3]
        name = f"{index:02d}{HOSTILE_FILE}"
        colour = generator.integers(0, 255, size=(24, 24, 3)).astype(np.uint8)
        Image.fromarray(colour).save(images / name, format="PNG")
        value = ("a<i>", "\u2067b\u2069")[(index // 6 + index % 2) % 2]
        rows.append((name, split, HOSTILE_CLASSES[index % 2], value))
    write_csv(images / "metadata.csv", ("filename", "split", "y", "a"), rows)
    table = load_table(images)
    return write_run(path, table, place=str(images))


def _data(run: RunDirectory, table: Table) -> None:
    with run.writing("data", "fixture", 1.5) as folder:
        summary = {
            "name": table.name,
            "format": table.format,
            "fingerprint": table.fingerprint(),
            "class_names": list(table.class_names),
            "attribute_names": list(table.attribute_names or ()),
            "counts": table.counts(),
            "quarantined": {table.class_names[0]: 2},
            "warnings": [*table.warnings, "2 unreadable images left out (0-4: 2)"],
        }
        write_json(folder / "summary.json", summary)
        columns = zip(table.ids, table.split, table.y, table.a, strict=True)
        rows = [
            (row, image, SPLIT_NAMES[split], y, a)
            for row, (image, split, y, a) in enumerate(columns)
        ]
        write_csv(folder / "table.csv", ("row", "id", "split", "y", "a"), rows)


def _mine(run: RunDirectory, table: Table, pseudo: Any, score: Any) -> None:
    two = table.n_values == 2
    with run.writing("mine", "fixture", 40.0) as folder:
        pictures = []
        (folder / "pictures").mkdir()
        for kind, title, caption, size in PICTURES:
            name = f"{kind}.png"
            _draw(size).save(folder / "pictures" / name)
            pictures.append(
                {
                    "file": f"pictures/{name}",
                    "kind": kind,
                    "concept": 3,
                    "title": title,
                    "caption": caption,
                }
            )
        recall = {}
        for split in table.split_names[:2]:
            rows = table.rows(split)
            recall[split] = {
                f"{y},{a}": float((pseudo[rows] == table.a[rows])[mine].mean())  # type: ignore[index]
                for y in range(table.n_classes)
                for a in range(table.n_values)
                if (mine := (table.y[rows] == y) & (table.a[rows] == a)).any()  # type: ignore[index]
            }
        summary = {
            "verdict": "found",
            "sentence": "The classes can be told by a concept that looks like a shortcut: "
            "concept 3 alone gives 98% of the class signal.",
            "evidence": EVIDENCE,
            "concepts": [3, 7],
            "reasons": [],
            "values": int(pseudo.max()) + 1,
            "recall": recall,
            "balanced_accuracy": {s: float(np.mean(list(r.values()))) for s, r in recall.items()},
            "warnings": ["the rarest class × value has few images"],
            "threshold": 0.0 if two else None,
            "pictures": pictures,
        }
        write_json(folder / "summary.json", summary)
        rows = [
            (row, image, SPLIT_NAMES[split], table.class_names[y], p, f"{s:.6f}")
            for row, (image, split, y, p, s) in enumerate(
                zip(table.ids, table.split, table.y, pseudo, score, strict=True)
            )
        ]
        header = ("row", "image", "split", "class", "pseudo", "score")
        write_csv(folder / "pseudo.csv", header, rows)


def _evaluate(
    run: RunDirectory,
    table: Table,
    pseudo: Any,
    before: Any,
    after: Any,
    generator: Any,
    gradcam: int,
) -> None:
    asked = np.flatnonzero(table.split != SPLIT_NAMES.index("train"))
    with run.writing("evaluate", "fixture", 12.0) as folder:
        results = []
        for split in [s for s in table.split_names if s.startswith("test")]:
            rows = table.rows(split)
            for method, answers in (("erm", before), ("d2cp", after)):
                results.append(_result(table, rows, method, split, answers))
        write_json(folder / "results.json", results)
        header = ("row", "id", "split", "y", "pseudo", "a", "erm", "erm_p", "d2cp", "d2cp_p")
        sure = generator.uniform(0.55, 1, size=(len(table), 2)).round(4)
        listed = [
            (
                row,
                table.ids[row],
                SPLIT_NAMES[table.split[row]],
                table.y[row],
                pseudo[row],
                table.a[row],  # type: ignore[index]
                before[row],
                sure[row, 0],
                after[row],
                sure[row, 1],
            )
            for row in asked.tolist()
        ]
        write_csv(folder / "predictions.csv", header, listed)
        (folder / "gradcam").mkdir()
        pairs = []
        changed = asked[before[asked] != after[asked]]
        for index, row in enumerate(changed[:gradcam].tolist()):
            names = {"before": f"{index:02d}-before.png", "after": f"{index:02d}-after.png"}
            for name in names.values():
                heat = generator.integers(0, 255, size=(7, 7, 3)).astype(np.uint8)
                Image.fromarray(heat).resize((168, 168)).save(folder / "gradcam" / name)
            pairs.append(
                {
                    "row": row,
                    "id": str(table.ids[row]),
                    "y": int(table.y[row]),
                    "pseudo": int(pseudo[row]),
                    "erm": int(before[row]),
                    "d2cp": int(after[row]),
                    **names,
                }
            )
        write_json(folder / "gradcam" / "gradcam.json", pairs)


def _result(table: Table, rows: Any, method: str, split: str, answers: Any) -> dict[str, Any]:
    assert table.a is not None
    return score(
        answers[rows],
        table.y[rows],
        table.a[rows],
        table.n_values,
        table.groups()[table.rows("train")],
        method=method,
        seed=3,
        split=split,
        selection="val_pseudo_groups",
        grouping="true",
        class_names=table.class_names,
        attribute_names=table.attribute_names,
    ).to_dict()


def _draw(size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    for x in range(0, size[0], 56):
        for y in range(0, size[1], 56):
            colour = (30, 150, 60) if (x // 56 + y // 56) % 2 else (190, 40, 40)
            draw.rectangle((x + 3, y + 3, x + 52, y + 52), fill=colour)
    return image


EVIDENCE = {
    "images": 50000,
    "classes": 2,
    "concepts": 20,
    "mined": 2,
    "chance": 0.5,
    "accuracy_all": 0.991,
    "accuracy_mined": 0.989,
    "signal_all": 0.93,
    "signal_mined": 0.915,
    "signal_share": 0.984,
    "agreement": 0.99,
    "disagreeing": 485,
    "confident_disagreement": 0.94,
    "bic_gain": 1.9,
    "separation": 6.1,
    "stability_concepts": 0.95,
    "stability_labels": 0.998,
    "values": 2,
    "smallest_cell": 231,
    "empty_cells": 0,
}
PICTURES = (
    (
        "swap",
        "Concept 3 swapped",
        "Left the image, middle the same image with the concept of another one: look at what "
        "changes and what stays.",
        (336, 336),
    ),
    (
        "traversal",
        "Concept 3 from low to high",
        "One image a row; only this concept moves from left to right.",
        (560, 168),
    ),
    (
        "extremes",
        "Images at both ends of concept 3",
        "Real images: the lowest scores above, the highest below, by class.",
        (560, 224),
    ),
    (
        "attention",
        "Where concept 3 acts",
        "Bright patches are those the concept writes to.",
        (448, 168),
    ),
)


def comparison_cells() -> list[dict[str, Any]]:
    """Cells of `d2cp compare`: five methods, three seeds, two splits."""
    levels = {
        "erm": (0.08, 0.99, []),
        "jtt": (0.61, 0.93, []),
        "xrm": (0.83, 0.95, []),
        "d2cp": (0.95, 0.97, []),
        "group_dro": (0.955, 0.968, ["train"]),
    }
    return [
        {
            "tier": "prompts",
            "trainable": 18_000 + 500 * index,
            "passes": 25_000,
            "seconds": 31.0 + index,
            "params": {},
            "group_labels": labels,
            "mined_groups": False,
            "notes": ["stopped early"] if method == "jtt" else [],
            "results": [
                _cell_result(method, seed, split, worst + 0.01 * (seed - 1), mean)
                for split in ("test", "test_balanced")
            ],
        }
        for index, (method, (worst, mean, labels)) in enumerate(levels.items())
        for seed in range(3)
    ]


def _cell_result(method: str, seed: int, split: str, worst: float, mean: float) -> dict[str, Any]:
    size, share = np.array([2570, 2431]), np.array([worst, mean])
    found = GroupAccuracy(np.array([0, 1]), size, share, size.astype(float))
    names = {"0,0": "0-4", "1,0": "5-9"}
    return {
        "method": method,
        "seed": seed,
        "split": split,
        "selection": "val_pseudo_groups",
        "grouping": "true",
        **figures(found),
        "mean": mean,
        "groups": {
            key: {"name": name, "n": int(n), "accuracy": float(right)}
            for (key, name), n, right in zip(names.items(), size, share, strict=True)
        },
    }


def write_comparison(path: Path) -> RunDirectory:
    """A directory of `d2cp compare`."""
    about = {
        "selection": "val_pseudo_groups",
        "budget": 25_000,
        "backbone": "embedded",
        "machine": "2 CPU cores, no accelerator",
    }
    run = RunDirectory(path)
    run.start({"config": {}, "data": {"name": "cmnist"}, "version": "0.1.0"})
    write_json(path / "compare.json", comparison(comparison_cells(), data="cmnist", about=about))
    return run
