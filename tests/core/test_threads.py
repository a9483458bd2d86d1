"""The number of threads: by the work's size, within what the user and the system allow."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from d2cp.core import threads


@pytest.fixture
def four(monkeypatch):
    """A machine of four cores whose user has said nothing."""
    for name in threads.CHOSEN_BY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "cores", lambda: 4)
    with threads.using(4):
        yield


def test_small_steps_take_one_thread_and_large_ones_all(four):
    assert threads.threads_for(32 * 3 * 28**2) == 1
    assert threads.threads_for(2 * threads.GRAIN) == 2
    assert threads.threads_for(32 * 3 * 224**2) == 4


def test_a_resumed_loop_keeps_its_number(four):
    assert threads.threads_for(10**9, before=1) == 1
    assert threads.threads_for(0, before=3) == 3
    assert threads.threads_for(0, before=64) == 4, "no more than the machine has"


def test_the_users_setting_stands(four, monkeypatch):
    with threads.using(2):
        assert threads.threads_for(10**9) == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert threads.threads_for(0) == 4


def test_using_gives_the_number_back():
    before = torch.get_num_threads()
    with pytest.raises(KeyError), threads.using(before + 1):
        assert torch.get_num_threads() == before + 1
        raise KeyError
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("membership", "files", "limits"),
    [
        ("0::/a/b\n", {"a/cpu.max": "150000 100000", "a/b/cpu.max": "max 100000"}, [1.5]),
        ("0::/\n", {"cpu.max": "200000 100000"}, [2.0]),
        (
            "3:cpu,cpuacct:/box\n2:memory:/box\n",
            {"cpu/box/cpu.cfs_quota_us": "300000", "cpu/box/cpu.cfs_period_us": "100000"},
            [3.0],
        ),
        ("3:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, []),
        ("0::/gone\n", {}, []),
    ],
)
def test_limits_of_control_groups(tmp_path, membership, files, limits):
    (tmp_path / "own").write_text(membership)
    for name, text in files.items():
        (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / name).write_text(text)
    assert threads.quotas(tmp_path / "sys", tmp_path / "own") == limits


def test_cores_are_those_granted(monkeypatch):
    monkeypatch.setattr(threads, "quotas", lambda: [0.5, 7.0])
    assert threads.cores() == 1


@pytest.mark.parametrize("chosen", [{}, {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "9"}])
def test_waiting_is_passive_unless_the_user_chose(chosen):
    code = (
        "import os; from d2cp.cli import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
    )
    code += "print(os.environ.get('OMP_WAIT_POLICY'))"
    free = {k: v for k, v in os.environ.items() if k not in threads.WAITING}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**free, **chosen}, capture_output=True, text=True
    )
    expected = chosen.get("OMP_WAIT_POLICY", "None" if chosen else "passive")
    assert done.stdout.split()[-1] == expected
