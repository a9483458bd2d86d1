"""The swap strip: images as the concept model draws them, and with the mined concept exchanged."""

from __future__ import annotations

import numpy as np
import torch

from d2cp.core.files import read_json
from d2cp.core.run_directory import RunDirectory
from d2cp.disentangle.concept_files import load_concepts, load_model
from d2cp.disentangle.concept_pictures import as_pixels
from d2cp.disentangle.sampling import draw, start_noise, swapped
from d2cp.pipeline.finding_pictures import subjects_and_donors
from d2cp.report.rows import read_rows
from tools.pictures.rows import Line

SHOWN = 8


def swap_lines(run: RunDirectory) -> list[Line]:
    """Training images of every class and value; donors have the class and the other value."""
    rows = read_rows(run)
    train = np.flatnonzero(rows.split == "train")
    found = read_json(run.artifact("mine") / "summary.json")
    seed = int(run.description["config"]["seed"])
    subjects, donors = (
        train[chosen][:SHOWN]
        for chosen in subjects_and_donors(
            rows.y[train], rows.pseudo[train], int(found["values"]), seed
        )
    )
    folder = run.artifact("disentangle")
    model, (concepts, _) = load_model(folder), load_concepts(folder)
    own, lent = (torch.from_numpy(concepts.scalars[chosen]) for chosen in (subjects, donors))
    noise = start_noise(model, subjects, seed)
    changed = swapped(own, lent, list(found["concepts"]))
    return [
        Line("as the concept model draws them", list(as_pixels(draw(model, own, noise)))),
        Line("the mined concept exchanged", list(as_pixels(draw(model, changed, noise)))),
    ]
