import pickle
import shutil

import pytest
import torch

from d2cp.core.checkpoint import Checkpointer, load_optimizer_state, optimizer_state
from d2cp.errors import RunError


def make(tmp_path, identity="x", **options):
    return Checkpointer(tmp_path / "checkpoints", identity, **options)


def test_round_trip_keeps_bits_and_only_the_last_two(tmp_path):
    checkpointer = make(tmp_path)
    assert checkpointer.load() is None
    for step in (1, 2, 3):
        checkpointer.save(step, {"w": torch.full((2,), step / 3)}, {"best": step, "list": [1, 2]})
    found = checkpointer.load()
    assert found.step == 3 and found.state == {"best": 3, "list": [1, 2]}
    assert torch.equal(found.tensors["w"], torch.full((2,), 1.0))
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2


@pytest.mark.parametrize("damage", ["truncate", "pickle", "empty", "flip", "step", "identity"])
def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(tmp_path, damage):
    checkpointer = make(tmp_path)
    checkpointer.save(1, {"w": torch.ones(100)}, {})
    checkpointer.save(2, {"w": torch.zeros(100)}, {})
    newest = tmp_path / "checkpoints" / "step-000000002.safetensors"
    data = newest.read_bytes()
    flipped = data[:-7] + bytes([data[-7] ^ 1]) + data[-6:]
    damaged = {"truncate": data[:-40], "pickle": pickle.dumps(print), "empty": b"", "flip": flipped}
    damaged["step"] = data.replace(b'"step":"2"', b'"step":"7"')
    damaged["identity"] = data.replace(b'"identity":"x"', b'"identity":"z"')
    assert damaged[damage] != data
    newest.write_bytes(damaged[damage])
    with pytest.warns(UserWarning, match="going back"):
        assert checkpointer.load().step == 1


def test_a_checkpoint_under_the_name_of_another_step_is_refused(tmp_path):
    checkpointer = make(tmp_path)
    checkpointer.save(1, {"w": torch.ones(1)}, {})
    folder = tmp_path / "checkpoints"
    shutil.copy(folder / "step-000000001.safetensors", folder / "step-000000005.safetensors")
    with pytest.warns(UserWarning, match="it says that it is of step 1"):
        assert checkpointer.load().step == 1


def test_a_stray_temporary_is_not_read(tmp_path):
    checkpointer = make(tmp_path)
    checkpointer.save(1, {"w": torch.ones(1)}, {})
    (tmp_path / "checkpoints" / ".step-000000009.safetensors.abc.tmp").write_bytes(b"half")
    assert checkpointer.load().step == 1


def test_another_identity_is_refused_unless_forced(tmp_path):
    make(tmp_path).save(1, {"w": torch.ones(1)}, {})
    with pytest.raises(RunError, match="another configuration"):
        make(tmp_path, "y").load()
    forced = make(tmp_path, "y", force=True)
    assert forced.load() is None
    forced.save(1, {"w": torch.zeros(1)}, {})  # and it is this one that is found again
    assert make(tmp_path, "y").load().tensors["w"].item() == 0


def test_clear_leaves_nothing(tmp_path):
    checkpointer = make(tmp_path)
    checkpointer.save(1, {"w": torch.ones(1)}, {})
    checkpointer.clear()
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_optimizer_state_round_trip_continues_with_the_same_bits(kind):
    def start():
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(3, 3))
        options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        return weight, kind([weight], lr=0.1, **options)

    def step(weight, optimizer):
        optimizer.zero_grad()
        (weight**3).sum().backward()
        optimizer.step()

    weight, optimizer = start()
    for _ in range(3):
        step(weight, optimizer)
    tensors, state = optimizer_state(optimizer)
    tensors = {k: v.clone() for k, v in tensors.items()}
    copy, resumed = start()
    copy.data.copy_(weight.data)
    load_optimizer_state(resumed, tensors, state)
    step(weight, optimizer)
    step(copy, resumed)
    assert torch.equal(weight, copy)


def test_the_first_checkpoint_comes_soon_and_the_next_in_its_time(tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("d2cp.core.checkpoint.time.monotonic", lambda: now[0])
    checkpointer = make(tmp_path, every_seconds=60, _last=now[0])
    assert not checkpointer.due(1)
    now[0] += 6
    assert checkpointer.due(2)
    checkpointer.save(2, {"w": torch.ones(1)}, {})
    now[0] += 59
    assert not checkpointer.due(3)
    now[0] += 2
    assert checkpointer.due(4)
