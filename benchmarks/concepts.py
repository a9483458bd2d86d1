"""Concepts and pseudo labels scored against true attributes, several seeds, guide on and off.

    python benchmarks/concepts.py cmnist --preset demo --swap
    python benchmarks/concepts.py BIRDS --preset photo-cpu --seeds 0 1 2 --guide both
    python benchmarks/smallmark.py BIRDS /tmp/mark
    python benchmarks/concepts.py /tmp/mark --preset photo-cpu --guide both

True attributes score the outcome; nothing is chosen by them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import saved
from d2cp.config import Config, load_config
from d2cp.config.strict import changed
from d2cp.data import load_images, load_table
from d2cp.data.mnist import load_mnist
from d2cp.data.pixels import channels_first, to_bytes, to_signed
from d2cp.disentangle.concept_files import save_concepts, save_model
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.concept_pictures import encode
from d2cp.disentangle.concept_training import train_concepts
from d2cp.disentangle.extract import extract
from d2cp.disentangle.guide import LazyNet
from d2cp.disentangle.sampling import draw, swapped
from d2cp.mine import apply, mine
from d2cp.mine.quality import concept_auroc, score_against_truth
from d2cp.pipeline.opening import bound

PAPER_CELEBA = "92.4 / 79.7 / 98.7 / 50.3"


def run(data: str, config: Config, seed: int, swap: bool, keep: Path | None) -> dict[str, Any]:
    table = bound(load_table(data), config)
    table, store = load_images(table, config.disentangle.size, quiet=True)
    train = table.rows("train")
    began = time.monotonic()
    model = train_concepts(store, train, table.y[train], config.disentangle, seed)
    trained = time.monotonic() - began
    rows = np.arange(len(table))
    found = extract(model, store, rows)
    extracted = time.monotonic() - began
    mined = mine(
        found.tokens[train], table.y[train], config.mine, seed, scalars=found.scalars[train]
    )
    pseudo, _ = apply(mined, found.tokens, found.scalars)
    if keep is not None:
        save_model(model, keep)
        save_concepts(found, rows, keep)
    result: dict[str, Any] = {
        "seed": seed,
        "guide": model.guided,
        "seconds_training": round(trained, 1),
        "seconds_stage": round(time.monotonic() - began, 1),
        "seconds_extract": round(extracted - trained, 1),
        "verdict": mined.verdict.outcome,
        "reasons": list(mined.verdict.reasons),
        "concepts": [int(k) for k in mined.concepts],
    }
    assert table.a is not None, "this benchmark needs true attributes to score against"
    splits = {name: table.rows(name) for name in table.split_names}
    scores = score_against_truth(pseudo, table.a, table.y, splits, found.scalars)
    val = table.rows("val")
    if table.n_values == 2:
        for name, truth in (("attribute", table.a), ("class", table.y)):
            areas = concept_auroc(found.scalars[val], truth[val] == 1)
            result[f"auroc_{name}"] = [round(float(area), 3) for area in areas]
    result |= {key: _rounded(scores[key]) for key in ("recall", "balanced_accuracy", "agreement")}
    if swap:
        result["swap"] = score_swap(model, store, table, pseudo, list(mined.concepts), seed)
    return result


def score_swap(
    model: ConceptModel, store: Any, table: Any, pseudo: Any, concepts: list[int], seed: int
) -> dict[str, float]:
    """Coloured digits only: how often the swap changes the colour and keeps the digit."""
    val = table.rows("val")
    draw_from = np.random.default_rng(seed)
    chosen, donors = [], []
    for value in (0, 1):
        here = draw_from.permutation(val[pseudo[val] == value])
        other = draw_from.permutation(val[pseudo[val] != value])
        count = min(100, len(here), len(other))
        chosen.append(here[:count])
        donors.append(other[:count])
    subjects = encode(model, store, np.concatenate(chosen), seed)
    lenders = encode(model, store, np.concatenate(donors), seed)
    own = to_bytes(draw(model, subjects.scalars, subjects.noise)).numpy()
    moved = swapped(subjects.scalars, lenders.scalars, concepts)
    changed = to_bytes(draw(model, moved, subjects.noise)).numpy()
    digits = digit_classifier(seed)
    before, after = digits(own), digits(changed)
    real = to_bytes(subjects.images).numpy()
    return {
        "images": len(own),
        "colour_changed": float(np.mean(colour(own) != colour(changed))),
        "digit_kept": float(np.mean(before == after)),
        "decoded_colour_true": float(np.mean(colour(own) == colour(real))),
        "decoded_digit_true": float(np.mean(before == digits(real))),
    }


def colour(pixels: np.ndarray) -> np.ndarray:
    """The fixed rule: red when the red channel holds more light than the green one."""
    total = pixels.astype(np.int64).sum((1, 2))
    return (total[:, 1] > total[:, 0]).astype(np.int64)


def digit_classifier(seed: int, steps: int = 600) -> Any:
    """An independent judge of the digit, trained on grey MNIST; it never saw a decoded image."""
    mnist = load_mnist()
    torch.manual_seed(seed)
    net = LazyNet(10, 32)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    order = np.random.default_rng(seed)
    for _ in range(steps):
        pick = order.integers(len(mnist.train_labels), size=128)
        grey = mnist.train_images[pick][..., None].repeat(3, axis=3)
        loss = torch.nn.functional.cross_entropy(
            net(to_signed(channels_first(grey))), torch.from_numpy(mnist.train_labels[pick])
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()

    @torch.no_grad()
    def answer(pixels: np.ndarray) -> np.ndarray:
        grey = pixels.max(-1, keepdims=True).repeat(3, axis=3)
        return net(to_signed(channels_first(grey))).argmax(1).numpy()

    grey = mnist.test_images[:2000, :, :, None].repeat(3, axis=3)
    print(f"digit judge: {np.mean(answer(grey) == mnist.test_labels[:2000]):.3f} on MNIST test")
    return answer


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return round(float(value), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="an embedded set's name or a folder")
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--guide", choices=["on", "off", "both"], default="on")
    parser.add_argument("--swap", action="store_true", help="coloured digits: score the swap")
    parser.add_argument("--set", action="append", default=[], metavar="STAGE.KEY=VALUE")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="save models and concepts below this folder")
    saved.option(parser)
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    base = load_config(given.preset, assignments=given.set)
    found = {}
    for guide in {"both": ("off", "on")}.get(given.guide, (given.guide,)):
        config = base
        if guide == "off":
            paper = changed(base.disentangle, {"guide.concepts": 0})
            config = dataclasses.replace(base, disentangle=paper)
        results = []
        for seed in given.seeds:
            keep = given.keep / f"{guide}-{seed}" if given.keep else None
            result = run(given.data, config, seed, given.swap, keep)
            results.append(result)
            print(json.dumps(result), flush=True)
        report(f"{given.data}, preset {given.preset}, guide {guide}", results)
        found[f"guide {guide}"] = results
    saved.save(
        given.save,
        seeds=given.seeds,
        selection="",
        tables={"": outcomes(found)},
        figures={
            f"swap {key}": f"{np.mean([r['swap'][key] for r in results]):.3f}"
            for results in found.values()
            for key in results[0].get("swap", {})
        },
        about="recall of the groups y,a in their order",
    )


def outcomes(found: dict[str, list[dict[str, Any]]]) -> saved.Table:
    """Verdicts, and how right the pseudo attribute is: mean, least and greatest over seeds."""
    rows = []
    for name, results in found.items():
        for split in results[0]["balanced_accuracy"]:
            right = [r["balanced_accuracy"][split] for r in results]
            groups = results[0]["recall"][split]
            recalls = [f"{_mean(results, 'recall', split, g):.3f}" for g in groups]
            rows.append(
                [
                    name,
                    ", ".join(r["verdict"] for r in results),
                    split,
                    f"{np.mean(right):.3f}",
                    f"{min(right):.3f} to {max(right):.3f}",
                    " / ".join(recalls) if len(groups) <= 8 else "",
                ]
            )
    return saved.table(
        ["stage 1", "verdicts", "split", "balanced accuracy", "over seeds", "recall by group"], rows
    )


def report(title: str, results: list[dict[str, Any]]) -> None:
    print(f"== {title}: mean over {len(results)} seeds ==")
    for split in results[0]["recall"]:
        groups = results[0]["recall"][split]
        recalls = [f"{g}: {_mean(results, 'recall', split, g):.3f}" for g in groups]
        print(
            f"{split}: pseudo-label balanced accuracy "
            f"{_mean(results, 'balanced_accuracy', split):.3f}"
            + (f"; recall of group y,a {', '.join(recalls)}" if len(groups) <= 8 else "")
            + f"; agreement {_mean(results, 'agreement', split):.3f}"
        )
    if "auroc_attribute" in results[0]:
        for name in ("attribute", "class"):
            best = [max(r[f"auroc_{name}"]) for r in results]
            print(f"best single-concept AUROC of the {name} on val: {np.mean(best):.3f} ({best})")
    print(f"(chance 0.5; the paper's recalls on CelebA's train split: {PAPER_CELEBA})")
    for key in results[0].get("swap", {}):
        print(f"swap {key}: {np.mean([r['swap'][key] for r in results]):.3f}")
    print(f"stage seconds: {[r['seconds_stage'] for r in results]}")


def _mean(results: list[dict[str, Any]], *keys: str) -> float:
    values = []
    for result in results:
        value: Any = result
        for key in keys:
            value = value[key]
        values.append(value)
    return float(np.mean(values))


if __name__ == "__main__":
    main()
