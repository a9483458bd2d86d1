"""Is the finding a colour? Then every image can be shown in the colours of the other value.

Edits of training images (`d2cp.disentangle.edits`) say how the model thinks of the finding; a map
of colours (`d2cp.disentangle.colour_map`) is fitted to them, and tried on other training images:
does stage 1 read the other value off them? Only then does stage 2 use it (`debias.recolour`). No
true attribute has a part in this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from d2cp.core.arrays import Floats, Ints, Rows
from d2cp.core.files import read_json, write_json
from d2cp.core.rng import numpy_generator
from d2cp.data.pixels import signed_view, to_bytes
from d2cp.data.store import ImageStore
from d2cp.debias.twins import TwinStore
from d2cp.disentangle.colour_map import ColourMap, fit_colour_map
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.edits import edit
from d2cp.disentangle.extract import extract
from d2cp.mine import Mined, apply

FILE = "recolour.json"
EDITED = 60
"""Images of each value that are edited, as many that the map is tried on, and that are real."""
ENOUGH = 0.9
"""Share of images of either value that have to be read as the other."""


@dataclass(frozen=True)
class Recolouring:
    """`maps[v]` takes an image of value v to the other; of other images so many are `turned`."""

    maps: tuple[ColourMap, ...]
    turned: tuple[float, ...]

    @property
    def works(self) -> bool:
        return min(self.turned) >= ENOUGH

    def sentence(self) -> str:
        turned = " and ".join(f"{100 * share:.0f}%" for share in self.turned)
        if not self.works:
            return (
                f"the finding is no colour alone: recoloured, {turned} of images of either value "
                f"are read as the other ({100 * ENOUGH:.0f}% wanted)"
            )
        return f"recoloured, {turned} of images of either value are read as the other"


def recolouring(
    model: ConceptModel,
    mined: Mined,
    store: ImageStore,
    train: Rows,
    pseudo: Ints,
    scalars: NDArray[np.float32],
    seed: int,
) -> Recolouring | None:
    """Of a mined attribute of two values that training images have both, else None; `pseudo` and
    `scalars` are of all rows."""
    if mined.values != 2 or len(np.unique(pseudo[train])) < 2:
        return None
    draw = numpy_generator(seed, "mine/recolour")
    drawn = [draw.permutation(train[pseudo[train] == value]) for value in (0, 1)]
    concepts, maps = list(mined.concepts), []
    for value, rows in enumerate(drawn):
        other = drawn[1 - value]
        target = scalars[other][:, concepts].mean(0)
        before, after = _edited(model, store, np.sort(rows[:EDITED]), concepts, target, seed)
        maps.append(fit_colour_map(before, after, _colours(store, np.sort(other[:EDITED]))))
    tried = [np.sort(rows[EDITED:][:EDITED] if len(rows) > EDITED else rows) for rows in drawn]
    twins = TwinStore(store, pseudo, maps)
    return Recolouring(tuple(maps), tuple(_turned(model, mined, twins, r, pseudo) for r in tried))


def _edited(
    model: ConceptModel,
    store: ImageStore,
    rows: Rows,
    concepts: Sequence[int],
    target: NDArray[np.float32],
    seed: int,
) -> tuple[Floats, Floats]:
    """Colours of these images and of their edits, pixel by pixel."""
    device = model.latent_std.device
    images = signed_view(store, rows).to(device)
    own = model.scalars(images, model.guided_scalars(images, rows))
    moved = own.clone()
    moved[:, list(concepts)] = torch.from_numpy(target).to(moved)
    changed = images + edit(model, images, own, moved, rows, seed)
    after: Floats = to_bytes(changed.clamp(-1, 1)).cpu().numpy().reshape(-1, 3) / 255
    return _colours(store, rows), after


def _colours(store: ImageStore, rows: Rows) -> Floats:
    found: Floats = store[rows].reshape(-1, 3) / 255
    return found


def _turned(model: ConceptModel, mined: Mined, twins: TwinStore, rows: Rows, pseudo: Ints) -> float:
    """Share of these images whose twins are read as the other value."""
    found = extract(model, _Shifted(twins), rows)
    labels, _ = apply(mined, found.tokens, found.scalars)
    return float(np.mean(labels == 1 - pseudo[rows]))


class _Shifted:
    """Twins under the rows of their images, by which the guide knows which half of it may look."""

    def __init__(self, twins: TwinStore) -> None:
        self._twins = twins

    def __getitem__(self, rows: Rows, /) -> NDArray[np.uint8]:
        return self._twins[rows + self._twins.n // 2]


def save_recolouring(found: Recolouring, folder: Path) -> None:
    write_json(
        folder / FILE,
        {
            "maps": [
                {
                    "weight": one.weight.tolist(),
                    "offset": one.offset.tolist(),
                    "explained": one.explained,
                }
                for one in found.maps
            ],
            "turned": list(found.turned),
            "works": found.works,
        },
    )


def load_recolouring(folder: Path) -> Recolouring | None:
    """Of a mining that looked for one and found two values."""
    if not (folder / FILE).is_file():
        return None
    found = read_json(folder / FILE)
    maps = tuple(
        ColourMap(np.array(one["weight"]), np.array(one["offset"]), float(one["explained"]))
        for one in found["maps"]
    )
    return Recolouring(maps, tuple(float(share) for share in found["turned"]))
