"""The probe shows how far it is."""

from dataclasses import replace

import pytest

from d2cp.backbone import linear_probe as module
from d2cp.backbone import load_backbone
from d2cp.core.progress import Bar
from d2cp.data.mnist import load_mnist


def test_every_batch_moves_the_bar_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    mnist = load_mnist()
    small = replace(mnist, test_images=mnist.test_images[:300], test_labels=mnist.test_labels[:300])
    seen: list[tuple[int, bool]] = []
    real = module.progress

    def watched(total: int, title: str, *, quiet: bool):
        seen.append((total, quiet))
        return real(total, title, quiet=True)

    bars: list[Bar] = []
    step = Bar.step
    monkeypatch.setattr(module, "progress", watched)
    monkeypatch.setattr(
        Bar, "step", lambda self, **values: (bars.append(self), step(self, **values))[1]
    )
    module.probe_mnist(load_backbone("embedded"), small, 260, quiet=False)
    assert seen == [(12, False)] and bars[-1].done == 12
