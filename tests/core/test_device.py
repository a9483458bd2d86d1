"""Devices and precisions that are asked for: taken where they are there, refused where not."""

import pytest
import torch

from d2cp.cli import main
from d2cp.cli.options import resolve
from d2cp.config.debias import DebiasConfig
from d2cp.core import device
from d2cp.debias.loop import Batch, fit
from d2cp.errors import ConfigError


@pytest.mark.parametrize("name", ["gpu", "cuda:97", "meta", ""])
def test_a_device_that_is_not_there_is_refused_and_what_is_there_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"a device of this machine: cpu"):
        device.use_device(name)


@pytest.mark.parametrize("command", ["run", "discover", "compare"])
def test_commands_refuse_it_before_they_read_anything(command: str, tmp_path, capsys) -> None:
    out = tmp_path / "run"
    words = [command, "cmnist", "--preset", "demo", "--out", str(out)]
    for option, value in (("--device", "cuda:97"), ("--precision", "fp8")):
        with pytest.raises(SystemExit):
            main([*words, option, value])
        assert f"{option} {value}" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words, "--device", "cpu", "--precision", "fp16"])
    assert "fp16 on the CPU" in capsys.readouterr().err
    assert not (out / "data").exists()


def test_the_cpu_can_be_asked_for() -> None:
    device.use_device("cpu")
    assert device.process_state().device == torch.device("cpu")
    assert device.make_accelerator().device == torch.device("cpu")


def test_one_option_sets_the_precision_of_both_stages() -> None:
    config = resolve("demo", None, None, 0, precision="bf16")
    assert config.disentangle.precision == config.debias.precision == "bf16"
    assert resolve("demo", None, None, 0).debias.precision == "no"


@pytest.mark.parametrize(("precision", "kind"), [("no", torch.float32), ("bf16", torch.bfloat16)])
def test_stage_two_trains_in_the_precision_it_is_told(precision: str, kind: torch.dtype) -> None:
    layer, seen = torch.nn.Linear(4, 1), []

    def step(batch: Batch) -> tuple[torch.Tensor, dict[str, float]]:
        out = layer(batch.images)
        seen.append(out.dtype)
        return out.float().square().mean(), {}

    config = DebiasConfig(epochs=1, batch_size=4, precision=precision, image_size=4, resize=4)
    rows = torch.arange(4).numpy()
    fit(layer, step, lambda epoch: rows, lambda *_: torch.ones(4, 4), config, epoch_size=4,
        quiet=True)  # fmt: skip
    assert seen == [kind] and layer.weight.dtype == torch.float32


def test_a_launcher_that_starts_one_process_for_several_is_told(monkeypatch) -> None:
    """What `accelerate launch --cpu --num_processes 2` leaves in the environment."""
    for name in device.SIZES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "True")
    device.use_device()
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    with pytest.raises(ConfigError, match="asked for several processes and started one"):
        device.use_device()
