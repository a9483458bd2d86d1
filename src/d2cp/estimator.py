"""`D2CP`: the whole method with scikit-learn's habits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from d2cp.api import as_table, run
from d2cp.config import Config
from d2cp.config.request import Request
from d2cp.core.run_directory import RunDirectory
from d2cp.data.table import Table
from d2cp.errors import ConfigError, RunError
from d2cp.export.inputs import ImageLike, listed, picture

if TYPE_CHECKING:
    from d2cp.export.serving import Deployed


class D2CP:
    """Fit on a data set, predict images, evaluate by group, save for serving.

    >>> model = D2CP(preset="demo").fit("cmnist")        # doctest: +SKIP
    >>> model.predict(["digit.png"])                     # doctest: +SKIP
    """

    _folder: Path  # what `from_pretrained` was given

    def __init__(
        self,
        backbone: str | None = None,
        preset: str | None = None,
        *,
        seed: int | None = None,
        out: Path | str | None = None,
        config: Config | None = None,
        settings: dict[str, Any] | None = None,
        quiet: bool = False,
    ) -> None:
        """`out` keeps the run (and lets a killed fit go on); without it the run is temporary.
        `settings` are nested overrides such as {"debias": {"epochs": 2}}. A whole `config` says
        all that backbone, preset, seed and settings would. Without a preset, the images and the
        machine decide when `fit` sees them."""
        parts: dict[str, Any] = {"backbone": backbone, "preset": preset, "seed": seed}
        parts["settings"] = settings
        given = [name for name, value in parts.items() if value is not None]
        if config is not None and given:
            raise ConfigError(
                f"D2CP(config=…) together with {', '.join(given)}",
                expected="either a whole configuration or its parts",
                remedy="put them into the configuration: dataclasses.replace(config, seed=7)",
            )
        own = {name: parts[name] for name in given if name in ("backbone", "seed")}
        self.config = config or Request(preset=preset, overrides={**(settings or {}), **own})
        self.out, self.quiet = out, quiet

    @classmethod
    def from_pretrained(cls, folder: Path | str) -> Self:
        """A classifier that `save_pretrained` or `d2cp export` wrote: it predicts at once."""
        from d2cp.export.serving import Deployed

        model = cls()
        model._folder = Path(folder)
        model._serve(Deployed.load(model._folder))
        return model

    def _serve(self, deployed: Deployed) -> None:
        names = deployed.model.config.id2label
        self._deployed, self.classes_ = deployed, np.array([names[k] for k in range(len(names))])

    def fit(self, data: Table | str | Path, *, control: bool = False) -> Self:
        """Discover, debias and evaluate; `control` also trains ERM for comparison, and predicts
        with it where D2CP is not surely better (`summary_["choice"]`)."""
        if self.out is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="d2cp-")
        path = Path(self.out if self.out is not None else self._scratch.name)
        table = as_table(data)
        self.summary_ = run(
            table, out=path, config=self.config, control=control, report=False, quiet=self.quiet
        )
        self.run_ = RunDirectory.open(path)
        self._load()
        return self

    def _load(self) -> None:
        from d2cp.export.serving import Deployed
        from d2cp.export.ship import ship
        from d2cp.export.which import which_model

        with tempfile.TemporaryDirectory(prefix="d2cp-") as scratch:
            ship(self.run_.artifact(which_model(self.run_).stage), Path(scratch) / "model")
            self._serve(Deployed.load(Path(scratch) / "model"))

    def predict_proba(self, images: ImageLike | Iterable[ImageLike]) -> NDArray[np.float64]:
        """Class probabilities [n, classes] of one image or many: files, bytes, Pillow images,
        arrays or tensors."""
        import torch

        self._require_fit()
        given = listed(images)
        found = [np.zeros((0, len(self.classes_)))]
        for start in range(0, len(given), 64):
            squares = [
                self._deployed.square(picture(image, f"image {start + index}"))
                for index, image in enumerate(given[start : start + 64])
            ]
            with torch.no_grad():
                logits = self._deployed.model(self._deployed.pixels(squares)).logits
            found.append(logits.double().softmax(-1).numpy())
        return np.concatenate(found)

    def predict(self, images: ImageLike | Iterable[ImageLike]) -> NDArray[np.str_]:
        """The class name of each image."""
        answers = self.predict_proba(images).argmax(1)
        names: NDArray[np.str_] = self.classes_[answers]
        return names

    def evaluate(self, data: Table | str | Path | None = None) -> list[dict[str, Any]]:
        """Results by group on the fitted data set's test splits, or on another data set."""
        run = self._fitted_run("evaluate")
        if data is None:
            results: list[dict[str, Any]] = self.summary_.get("results", [])
            return results
        from d2cp.evaluate.elsewhere import evaluate_elsewhere

        return evaluate_elsewhere(run, as_table(data), quiet=self.quiet)

    def save_pretrained(self, folder: Path | str, *, onnx: bool = False) -> None:
        """The deployable classifier as a Hugging Face folder."""
        from d2cp.export.ship import ship
        from d2cp.export.which import which_model

        run = self._fitted_run("save")
        ship(run.artifact(which_model(run).stage), Path(folder), onnx=onnx)

    def _require_fit(self) -> None:
        if not hasattr(self, "_deployed"):
            raise RunError("this D2CP is not fitted yet", remedy="call .fit(data) first")

    def _fitted_run(self, what: str) -> RunDirectory:
        self._require_fit()
        if not hasattr(self, "run_"):
            raise RunError(
                f"this D2CP was loaded from {self._folder}, which has no run to {what} from",
                expected="a D2CP that was fitted here",
                remedy="copy the folder as it is; `d2cp evaluate RUN --data DATA` scores the run "
                "that it was exported from",
            )
        return self.run_
