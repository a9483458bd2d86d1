"""`D2CP`: the whole method with scikit-learn's habits."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from d2cp.api import as_table, run
from d2cp.config import Config, load_config
from d2cp.core.run_directory import RunDirectory
from d2cp.data.images import to_square
from d2cp.data.table import Table
from d2cp.errors import RunError

ImageLike = str | Path | Image.Image | NDArray[np.uint8]


class D2CP:
    """Fit on a data set, predict images, evaluate by group, save for serving.

    >>> model = D2CP(preset="demo").fit("cmnist")        # doctest: +SKIP
    >>> model.predict(["digit.png"])                     # doctest: +SKIP
    """

    def __init__(
        self,
        backbone: str | None = None,
        preset: str = "demo",
        *,
        seed: int = 0,
        out: Path | str | None = None,
        config: Config | None = None,
        settings: dict[str, Any] | None = None,
        quiet: bool = False,
    ) -> None:
        """`out` keeps the run (and lets a killed fit go on); without it the run is temporary.
        `settings` are nested overrides such as {"debias": {"epochs": 2}}."""
        overrides: dict[str, Any] = {**(settings or {}), "seed": seed}
        if backbone is not None:
            overrides["backbone"] = backbone
        self.config = config or load_config(preset, overrides=overrides)
        self.out, self.quiet = out, quiet

    def fit(self, data: Table | str | Path, *, control: bool = False) -> Self:
        """Discover, debias and evaluate; `control` also trains ERM for comparison."""
        if self.out is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="d2cp-")
        path = Path(self.out if self.out is not None else self._scratch.name)
        table = as_table(data)
        self.summary_ = run(
            table, out=path, config=self.config, control=control, report=False, quiet=self.quiet
        )
        self.run_ = RunDirectory.open(path)
        self.classes_ = np.array(table.class_names)
        self._load(path)
        return self

    def _load(self, path: Path) -> None:
        from d2cp.export.serving import Deployed
        from d2cp.export.ship import ship

        with tempfile.TemporaryDirectory(prefix="d2cp-") as scratch:
            ship(self.run_.artifact("debias"), Path(scratch) / "model")
            self._deployed = Deployed.load(Path(scratch) / "model")

    def predict_proba(self, images: Sequence[ImageLike]) -> NDArray[np.float64]:
        """Class probabilities [n, classes] of files, Pillow images or uint8 arrays [H, W, 3]."""
        import torch

        self._require_fit()
        found = [np.zeros((0, len(self.classes_)))]
        for start in range(0, len(images), 64):
            squares = [self._square(image) for image in images[start : start + 64]]
            with torch.no_grad():
                logits = self._deployed.model(self._deployed.pixels(squares)).logits
            found.append(logits.double().softmax(-1).numpy())
        return np.concatenate(found)

    def predict(self, images: Sequence[ImageLike]) -> NDArray[np.str_]:
        """The class name of each image."""
        answers = self.predict_proba(images).argmax(1)
        names: NDArray[np.str_] = self.classes_[answers]
        return names

    def evaluate(self, data: Table | str | Path | None = None) -> list[dict[str, Any]]:
        """Results by group on the fitted data set's test splits, or on another data set."""
        self._require_fit()
        if data is None:
            results: list[dict[str, Any]] = self.summary_.get("results", [])
            return results
        from d2cp.evaluate.elsewhere import evaluate_elsewhere

        return evaluate_elsewhere(self.run_, as_table(data), quiet=self.quiet)

    def save_pretrained(self, folder: Path | str, *, onnx: bool = False) -> None:
        """The deployable classifier as a Hugging Face folder."""
        from d2cp.export.ship import ship

        self._require_fit()
        ship(self.run_.artifact("debias"), Path(folder), onnx=onnx)

    def _square(self, image: ImageLike) -> NDArray[np.uint8]:
        config = self._deployed.model.config
        if isinstance(image, (str, Path)):
            return self._deployed.read(Path(image))
        picture = image if isinstance(image, Image.Image) else Image.fromarray(image)
        return to_square(picture.convert("RGB"), config.resize, centre_crop=config.centre_crop)

    def _require_fit(self) -> None:
        if not hasattr(self, "run_"):
            raise RunError("this D2CP is not fitted yet", remedy="call .fit(data) first")
