"""MaskTune (NeurIPS 22): hide what the network looked at, and train one more epoch.

ERM; a saliency map for each training image; pixels whose heat exceeds mean + 2 std of the map's
positive values become 0; fine-tune on the masked images for one epoch at the final rate.

Fidelity: rule and rate as published (the masked epoch goes on at the rate that ERM ended with), on
prompts. Adapted: the map of a ViT is Grad-CAM over the patch tokens that enter the last block, and
where passes are counted, "one epoch" is at most a third of them.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from d2cp.compare.contract import Params, Predictor, Spec
from d2cp.compare.task import ModelPredictor, Task, trainable
from d2cp.compare.tiers import READ, PromptedImages, PromptSpace, prompt_space
from d2cp.compare.train_classifier import train_classifier
from d2cp.core.arrays import Rows
from d2cp.data.store import ImageStore

SHARE = 1 / 3  # of the passes that the masked epoch may take


def hot_pixels(heat: Tensor) -> Tensor:
    """heat > mean + 2 std of its positive values, map by map [n, h, w] (an all-zero map: none)."""
    positive = heat > 0
    count = positive.sum((1, 2)).clamp(min=1)
    mean = heat.clamp(min=0).sum((1, 2)) / count
    spread = ((heat - mean[:, None, None]) ** 2 * positive).sum((1, 2)) / count
    return positive & (heat > (mean + 2 * spread.sqrt())[:, None, None])


class MaskedStore(ImageStore):
    """A store whose rows are shown with their mask set to 0."""

    def __init__(self, store: ImageStore, rows: Rows, masks: NDArray[np.bool_]) -> None:
        self._store, self.size, self.key, self.bad = store, store.size, store.key, store.bad
        self._masks = np.packbits(masks, axis=2)
        self._place = np.full(store.n, -1, dtype=np.int64)
        self._place[rows] = np.arange(len(rows))

    @property
    def n(self) -> int:
        return self._store.n

    def __getitem__(self, indices: Rows) -> NDArray[np.uint8]:
        masks = np.unpackbits(self._masks[self._place[indices]], axis=2, count=self.size)
        shown: NDArray[np.uint8] = self._store[indices] * (1 - masks)[..., None]
        return shown

    def subset(self, indices: Rows) -> ImageStore:
        raise NotImplementedError("masks belong to the rows they were made for")


def image_masks(space: PromptSpace, model: PromptedImages, rows: Rows) -> NDArray[np.bool_]:
    """Masks [n, size, size] over the store's images, from the maps of the model's own answers.

    Maps cover the centre crop that is scored; what lies outside it stays unmasked.
    """
    from d2cp.evaluate.gradcam import class_maps

    side = space.store.size
    masks = np.zeros((len(rows), side, side), dtype=bool)
    for start in range(0, len(rows), READ):
        part = slice(start, start + READ)
        images = space.read_plain(rows[part]).to(space.device)
        with torch.no_grad():
            answers = model(images).argmax(1)
        heat = class_maps(space.backbone, model.branch, images, answers).cpu()
        inner = images.shape[-1]
        wide = interpolate(heat[:, None], size=(inner, inner), mode="bilinear")[:, 0]
        edge = (side - inner) // 2
        masks[part, edge : edge + inner, edge : edge + inner] = hot_pixels(wide).numpy()
    return masks


class MaskTune:
    spec = Spec(
        name="masktune",
        title="MaskTune",
        venue="NeurIPS 22",
        fidelity="rule as published; Grad-CAM over the last patch tokens; on prompts",
        needs=frozenset({"prompts", "saliency", "images"}),
    )

    def fit(self, task: Task, params: Params) -> Predictor:
        self.spec.require_tier(task.space.tier)
        space = prompt_space(task.space)
        epoch = len(task.train)
        if task.equal == "passes":
            epoch = min(epoch, round(task.budget * SHARE))
        first = task.left(epoch)
        model = train_classifier(task, stage="erm", passes=first)
        assert isinstance(model, PromptedImages)
        masks = image_masks(space, model, task.train)
        task.notes.append(f"MaskTune: {100 * masks.mean():.1f}% of the pixels were masked")
        train_classifier(
            task,
            stage="masked",
            passes=epoch,
            model=model,
            changes={"lr": task.final_rate(first), "lr_schedule": "constant"},
            read=space.reader(MaskedStore(space.store, task.train, masks)),
        )
        return ModelPredictor(model, space, trainable(model))
