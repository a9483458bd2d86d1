"""The swap of a finished run on coloured digits: how often the colour changes and the digit stays.

python benchmarks/swap.py RUN
"""

from __future__ import annotations

import argparse
import json

from concepts import score_swap
from d2cp.config import config_from_dict
from d2cp.core.run_directory import RunDirectory
from d2cp.data import load_images, load_table
from d2cp.disentangle.concept_files import load_model
from d2cp.pipeline.discovered import load_discovery
from d2cp.pipeline.opening import bound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="made by d2cp demo, or by d2cp run on coloured digits")
    run = RunDirectory.open(parser.parse_args().run)
    config = config_from_dict(run.description["config"])
    table = bound(load_table(run.data["name"]), config)
    table, store = load_images(table, config.disentangle.size, quiet=True)
    found = load_discovery(run.artifact("mine"))
    model = load_model(run.artifact("disentangle"))
    concepts = list(found.summary["concepts"])
    scores = score_swap(model, store, table, found.pseudo, concepts, config.seed)
    recall = found.summary.get("recall")
    print(json.dumps({"seed": config.seed, "swap": scores, "recall": recall}))


if __name__ == "__main__":
    main()
