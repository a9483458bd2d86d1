"""What a mined concept looks like: swaps, traversals, extremes and attention, as PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from d2cp.core.arrays import Bytes as Pixels
from d2cp.core.arrays import Rows
from d2cp.data.pixels import Stored, signed_view, to_bytes
from d2cp.disentangle.attention import attention_maps
from d2cp.disentangle.canvas import Grid, heat_over
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.sampling import draw, invert, start_noise, swapped

QUANTILES = (0.02, 0.18, 0.34, 0.5, 0.66, 0.82, 0.98)


@dataclass(frozen=True)
class Subjects:
    """Images to draw, encoded once: their pixels, scalars, and the noise that redraws them."""

    rows: Rows
    images: Tensor
    scalars: Tensor
    noise: Tensor

    @property
    def pixels(self) -> Pixels:
        return as_pixels(self.images)


@torch.no_grad()
def encode(
    model: ConceptModel, store: Stored, rows: Rows, seed: int, *, inverted: bool = False
) -> Subjects:
    """Fresh noise for each row, or `inverted`: by DDIM inversion, to edit the image itself. That
    keeps detail, but a trace of the image's own colours stays in the noise and resists a swap."""
    model.eval()
    images = signed_view(store, rows).to(model.latent_std.device)
    scalars = model.scalars(images, model.guided_scalars(images, rows))
    if inverted:
        noise = invert(model, images, model.concept_tokens(scalars))
    else:
        noise = start_noise(model, rows, seed)
    return Subjects(rows, images, scalars, noise)


def as_pixels(images: Tensor) -> Pixels:
    return to_bytes(images).cpu().numpy()


def swap_picture(
    model: ConceptModel,
    subjects: Subjects,
    donors: Subjects,
    concepts: Sequence[int],
    labels: Sequence[str],
) -> Image.Image:
    """Original decoded | concepts swapped from the donor, same noise | the donor."""
    changed = swapped(subjects.scalars, donors.scalars, list(concepts))
    named = name_concepts(concepts)
    columns: list[tuple[str, Pixels]] = [
        ("image", subjects.pixels),
        ("decoded, its own concepts", as_pixels(draw(model, subjects.scalars, subjects.noise))),
        (f"{named} from the donor", as_pixels(draw(model, changed, subjects.noise))),
        ("donor", donors.pixels),
    ]
    note = "Only the named concept differs between the second and the third column: same noise. "
    if model.space.quantises:
        continuous = draw(model, subjects.scalars, subjects.noise, quantise=False)
        columns.insert(2, ("decoded without the codebook", as_pixels(continuous)))
        note += "Decoding snaps latents to the codebook unless the column says otherwise."
    else:
        note += "Pixel space: there is no codebook, so no quantised column."
    rows = [(label, [pixels[i] for _, pixels in columns]) for i, label in enumerate(labels)]
    title = f"What {named} changes when it is swapped"
    return Grid(title, note, [name for name, _ in columns], rows, breaks=(1,)).draw()


def traversal_picture(
    model: ConceptModel,
    subjects: Subjects,
    concept: int,
    train_scalars: NDArray[np.float32],
    labels: Sequence[str],
) -> Image.Image:
    """The concept moved from low to high (quantiles of the train split), the rest unchanged."""
    levels = np.quantile(train_scalars[:, concept], QUANTILES)
    moved = subjects.scalars.repeat(len(levels), 1)
    moved[:, concept] = torch.from_numpy(levels).to(moved).repeat_interleave(len(subjects.rows))
    drawn = as_pixels(draw(model, moved, subjects.noise.repeat(len(levels), 1, 1, 1)))  # in one go
    cells: list[Pixels] = [subjects.pixels, *np.split(drawn, len(levels))]
    rows = [(label, [pixels[i] for pixels in cells]) for i, label in enumerate(labels)]
    named = [f"{share:.0%}" for share in QUANTILES]
    named[0], named[-1] = f"low {named[0]}", f"high {named[-1]}"
    return Grid(
        f"{name_concepts([concept]).capitalize()} from low to high",
        "Each row is one image drawn again with only this concept set to a quantile of the "
        "training images.",
        ["image", *named],
        rows,
        cell=96,
        breaks=(1,),
    ).draw()


def extremes_picture(
    store: Stored,
    rows: Rows,
    y: NDArray[np.int64],
    values: NDArray[np.float32],
    class_names: Sequence[str],
    title: str,
    each: int = 5,
) -> Image.Image:
    """Real images at both ends of a scalar or score, class by class."""
    lines: list[tuple[str, Sequence[Pixels | None]]] = []
    for label, name in enumerate(class_names):
        members = np.flatnonzero(y == label)
        order = members[np.argsort(values[members], kind="stable")]
        low, high = order[:each], order[len(order) - min(each, len(order)) :]
        cells: list[Pixels | None] = [*store[rows[low]], *[None] * (each - len(low))]
        cells += [*[None] * (each - len(high)), *store[rows[high]]]
        lines.append((str(name), cells))
    columns = ["lowest", *[""] * (2 * each - 2), "highest"]
    note = "Real training images of each class. What the left half shares across the classes, and "
    note += "the right half lacks, is what the concept encodes."
    return Grid(title, note, columns, lines, cell=92, breaks=(each,)).draw()


def attention_picture(
    model: ConceptModel, subjects: Subjects, concepts: Sequence[int], labels: Sequence[str]
) -> Image.Image:
    """The cross-attention map of each concept's token over the image."""
    maps = attention_maps(model, subjects.images, subjects.scalars, subjects.noise).cpu().numpy()
    pixels = subjects.pixels
    rows: list[tuple[str, Sequence[Pixels | None]]] = []
    for i, label in enumerate(labels):
        cells: list[Pixels | None] = [pixels[i]]
        for concept in concepts:
            heat = maps[i, concept]
            low, high = np.quantile(heat, (0.02, 0.98))
            scaled = ((heat - low) / max(float(high - low), 1e-9)).clip(0, 1)
            cells.append(heat_over(pixels[i], scaled.astype(np.float32)))
        rows.append((label, cells))
    names = [name_concepts([concept]) for concept in concepts]
    note = "Red: places of the denoiser that attend to the concept's token more than others do."
    columns = ["image", *names]
    return Grid("Where the concepts act", note, columns, rows, breaks=(1,)).draw()


def name_concepts(concepts: Sequence[int]) -> str:
    """Concepts are numbered from 0, as in the files."""
    numbers = ", ".join(str(k) for k in concepts)
    return f"concept {numbers}" if len(concepts) == 1 else f"concepts {numbers}"
