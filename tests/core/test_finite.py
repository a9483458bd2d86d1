"""What is not a number stops the training and tells where."""

import pytest
import torch

from d2cp.core.checkpoint import Checkpointer
from d2cp.core.finite import require_finite, to_lower
from d2cp.errors import TrainingError


def test_step_images_and_last_good_checkpoint_are_named(tmp_path):
    checkpointer = Checkpointer(tmp_path, "x")
    require_finite(1.5, "debias", 3, [1], checkpointer, "lower lr")
    with pytest.raises(TrainingError, match="there is no checkpoint yet"):
        require_finite(float("nan"), "debias", 3, [1], checkpointer, "lower lr")
    checkpointer.save(2, {"w": torch.ones(2)}, {})
    with pytest.raises(TrainingError) as stop:
        require_finite(float("inf"), "debias", 3, list(range(20, 40)), checkpointer, "lower lr")
    said = str(stop.value)
    assert "inf at step 3" in said and "rows 20, 21" in said and "12 more" in said
    assert str(tmp_path / "step-000000002.safetensors") in said and "lower lr" in said


def test_weights_that_are_not_finite_are_not_saved(tmp_path):
    checkpointer = Checkpointer(tmp_path, "x")
    checkpointer.save(2, {"w": torch.ones(2), "n": torch.zeros(1, dtype=torch.int64)}, {})
    with pytest.raises(TrainingError, match=r"w is no longer finite after step 4; .*000000002"):
        checkpointer.save(4, {"w": torch.tensor([1.0, float("nan")])}, {})
    assert checkpointer.load().step == 2


def test_the_setting_that_can_be_to_blame_is_named():
    most = {"debias.lr": 1.0, "debias.weight_decay": 10.0, "debias.spurious_decay": 10.0}
    usual = {"debias.lr": 0.1, "debias.weight_decay": 1e-3, "debias.spurious_decay": None}
    assert "debias.lr (now 0.1)" in to_lower(usual, most)
    said = to_lower({**usual, "debias.weight_decay": 1e30}, most)
    assert said == "lower debias.weight_decay (now 1e+30)"
    assert "lr (now 5) and debias.spurious" in to_lower(
        {**usual, "debias.lr": 5, "debias.spurious_decay": 11}, most
    )
