"""Jobs are commands whose results lie in a shared folder: run where they are missing, and named
where they fail. Slurm and Ray themselves are tested where their libraries are installed."""

from __future__ import annotations

import subprocess
import sys
import time
import types
from pathlib import Path
from typing import ClassVar

import pytest

from d2cp.errors import ConfigError, RunError
from d2cp.executors import Away, Job, run_jobs, slurm

APPEND = "import sys; open(sys.argv[1], 'a').write('x')"


def job(folder: Path, name: str, code: str = APPEND) -> Job:
    result = folder / name
    words = (sys.executable, "-c", code, str(result))
    return Job(name, words, result.is_file)


def quiet(_: str) -> None:
    pass


def times_run(folder: Path) -> dict[str, int]:
    return {p.name: len(p.read_text()) for p in folder.iterdir() if p.is_file()}


def test_what_is_there_is_not_run_again(tmp_path):
    jobs = [job(tmp_path, name) for name in "abc"]
    (tmp_path / "b").write_text("x")
    for _ in range(2):
        run_jobs(jobs, Away(at_once=2), tmp_path / "logs", quiet)
    assert times_run(tmp_path) == {"a": 1, "b": 1, "c": 1}


def test_a_job_that_fails_is_named_and_the_others_are_kept(tmp_path):
    jobs = [job(tmp_path, "a"), job(tmp_path, "b", "print('no memory'); raise SystemExit(3)")]
    with pytest.raises(RunError, match=r"1 of 2 jobs left no result; b: exit code 3"):
        run_jobs(jobs, Away(), tmp_path / "logs", quiet)
    assert "no memory" in (tmp_path / "logs" / "b.log").read_text()
    assert times_run(tmp_path) == {"a": 1}


def test_this_machine_has_no_queue_to_ask(tmp_path):
    with pytest.raises(ConfigError, match="--queue gpus"):
        run_jobs([job(tmp_path, "a")], Away(options={"gpus": "1"}), tmp_path / "logs", quiet)


class FakeJob:
    """A job of the queue below: run at once, or lost without a word."""

    def __init__(self, number: int, command: slurm.Command, folder: Path) -> None:
        self.job_id, self.error = f"7_{number}", None
        folder.mkdir(parents=True, exist_ok=True)
        self.paths = types.SimpleNamespace(
            result_pickle=folder / str(number), stderr=folder / f"{number}.err"
        )
        if "lost" in command.words[-1]:
            return
        try:
            command()
        except subprocess.CalledProcessError as error:
            self.error = error
        self.paths.result_pickle.touch()

    def exception(self) -> Exception | None:
        return self.error

    def done(self) -> bool:
        return self.paths.result_pickle.exists()


class FakeExecutor:
    asked: ClassVar[dict] = {}

    def __init__(self, folder: Path, cluster: str) -> None:
        self.folder, self.count = folder, 0

    def update_parameters(self, **given) -> None:
        FakeExecutor.asked |= given

    def batch(self):
        import contextlib

        return contextlib.nullcontext()

    def submit(self, command: slurm.Command) -> FakeJob:
        self.count += 1
        return FakeJob(self.count, command, self.folder)


@pytest.fixture
def queue(monkeypatch):
    """Slurm as submitit shows it, in this process."""
    fake = types.ModuleType("submitit")
    fake.AutoExecutor = FakeExecutor
    monkeypatch.setitem(sys.modules, "submitit", fake)
    monkeypatch.setattr(slurm, "in_queue", lambda: set())
    for name in ("POLL", "ASK", "GRACE"):
        monkeypatch.setattr(slurm, name, 0.0)
    FakeExecutor.asked = {}


def test_a_queue_gets_commands_and_its_losses_are_named(queue, tmp_path):
    bad = job(tmp_path, "bad", "raise SystemExit(2)")
    jobs = [job(tmp_path, "a"), bad, job(tmp_path, "lost")]
    away = Away(executor="slurm", at_once=2, options={"mem_gb": "4", "slurm_partition": "gpu"})
    with pytest.raises(RunError, match=r"2 of 3 jobs left no result; bad: .*exit status 2"):
        run_jobs(jobs, away, tmp_path / "logs", quiet)
    asked = {"mem_gb": 4, "slurm_partition": "gpu", "slurm_array_parallelism": 2, "name": "d2cp"}
    assert FakeExecutor.asked == asked
    assert times_run(tmp_path) == {"a": 1}
    with pytest.raises(RunError, match="lost: Slurm no longer knows it"):
        run_jobs(jobs[2:], away, tmp_path / "again", quiet)


def test_a_job_that_is_queued_again_has_not_failed(queue, tmp_path, monkeypatch):
    """Preempted: its first attempt left an error, Slurm will run it once more, and does."""
    preempted = job(tmp_path, "bad", "raise SystemExit(2)")
    looks = []

    def in_queue() -> set[str]:
        looks.append(1)
        if len(looks) == 3:
            (tmp_path / "bad").write_text("x")
        return {"7_1"}

    monkeypatch.setattr(slurm, "in_queue", in_queue)
    run_jobs([preempted], Away(executor="slurm"), tmp_path / "logs", quiet)
    assert len(looks) == 3


def test_an_attempt_that_slurm_ends_tells_no_failure(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(slurm.time, "sleep", slept.append)
    killed = slurm.Command([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"])
    with pytest.raises(subprocess.CalledProcessError):  # where nobody ends it meanwhile
        killed()
    assert slept == [slurm.GRACE]


@pytest.mark.parametrize(("name", "extra"), [("slurm", "submitit"), ("ray", "ray")])
def test_a_missing_library_is_told_with_its_remedy(tmp_path, monkeypatch, name, extra):
    monkeypatch.setitem(sys.modules, extra, None)
    with pytest.raises(ConfigError, match=rf"(?s)needs {extra}.*d2cp\[{name}\]|needs Ray"):
        run_jobs([job(tmp_path, "a")], Away(executor=name), tmp_path / "logs", quiet)


def test_submitit_runs_commands(tmp_path):
    pytest.importorskip("submitit")
    jobs = [job(tmp_path, "a"), job(tmp_path, "b", "raise SystemExit(2)")]
    away = Away(executor="slurm", options={"cluster": "local", "timeout_min": "2"})
    with pytest.raises(RunError, match="1 of 2 jobs left no result; b: "):
        run_jobs(jobs, away, tmp_path / "logs", quiet)
    assert times_run(tmp_path) == {"a": 1}


def test_a_ray_node_is_killed_in_the_middle(tmp_path):
    pytest.importorskip("ray")
    import threading

    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        slow = "import sys, time; open(sys.argv[1] + '.began', 'a').write('x'); time.sleep(4); "
        jobs = [job(tmp_path, name, slow + APPEND) for name in "abcd"]

        def kill() -> None:
            while len(list(tmp_path.glob("*.began"))) < 2:
                time.sleep(0.1)
            cluster.remove_node(second, allow_graceful=False)

        killer = threading.Thread(target=kill)
        killer.start()
        run_jobs(jobs, Away(executor="ray"), tmp_path / "logs", quiet)
        killer.join()
        assert all(j.done() for j in jobs)
        began = {p.stem: len(p.read_text()) for p in tmp_path.glob("*.began")}
        assert sum(began.values()) > len(jobs), "nothing was interrupted"
    finally:
        ray.shutdown()
        cluster.shutdown()
