"""A batch in parts: the whole batch's gradients, the same bits on one core and on two."""

from __future__ import annotations

import os
import threading

import pytest
import torch
from torch import nn

from d2cp.core import parts, threads

LARGE = 10 * parts.PART


def crew() -> parts.Crew:
    return parts._crew.get()


@pytest.fixture(params=[1, 2])
def cores(request, monkeypatch):
    """A machine of one core or of two, whose user has said nothing."""
    for name in threads.CHOSEN_BY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "cores", lambda: request.param)
    monkeypatch.setattr(threads, "GRAIN", 10**9)
    with threads.using(request.param):
        yield request.param


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.GELU(), nn.Linear(7, 3))


def slopes(net: nn.Module, x: torch.Tensor, values: int, grown: torch.Tensor) -> list[torch.Tensor]:
    """Output and all gradients of a step that takes in so many numbers."""
    net.zero_grad()
    x = x.clone().requires_grad_()
    scale = grown.clone().requires_grad_()
    weights = [scale * 2, *net.parameters()]  # the first is no leaf

    def compute(part: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        return net(part * weights[0]) * kept[:, None]

    with parts.working(values):
        out = parts.in_parts(compute, (x, torch.arange(len(x)).float()), weights)
        (out**2).mean().backward()
    found = [out, x.grad, scale.grad, *(p.grad for p in net.parameters())]
    return [t.detach().clone() for t in found]


@pytest.mark.parametrize("count", [1, 2, 9])
def test_parts_give_what_the_whole_batch_gives(cores, count):
    net, x, scale = network(), torch.randn(count, 5), torch.randn(5)
    whole, split = slopes(net, x, 0, scale), slopes(net, x, LARGE, scale)
    for a, b in zip(whole, split, strict=True):
        torch.testing.assert_close(a, b)


def test_the_bits_do_not_depend_on_the_cores(monkeypatch):
    for name in threads.CHOSEN_BY:
        monkeypatch.delenv(name, raising=False)
    net, x, scale = network(), torch.randn(64, 5), torch.randn(5)
    found = []
    for count in (1, 2):
        monkeypatch.setattr(threads, "cores", lambda count=count: count)
        monkeypatch.setattr(threads, "GRAIN", 10**9)
        with threads.using(count):
            found.append(slopes(net, x, LARGE, scale))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_two_cores_work_at_the_same_time_and_one_does_not(cores):
    used = set()

    def compute(x: torch.Tensor) -> torch.Tensor:
        used.add(threading.get_ident())
        return x

    with parts.working(LARGE), torch.no_grad():
        assert torch.equal(parts.in_parts(compute, [torch.arange(6)]), torch.arange(6))
    assert len(used) == cores


def test_small_work_stays_whole_and_an_inner_loop_keeps_the_cores(cores):
    seen = []

    def compute(x: torch.Tensor) -> torch.Tensor:
        seen.append((len(x), threading.get_ident()))
        return x

    with torch.no_grad():
        parts.in_parts(compute, [torch.zeros(8)])
        with parts.working(2 * parts.PART - 1):
            parts.in_parts(compute, [torch.zeros(8)])
            with parts.working(2 * parts.PART):
                parts.in_parts(compute, [torch.zeros(8)])
            parts.in_parts(compute, [torch.zeros(8)])
    assert sorted(n for n, _ in seen) == [4, 4, 8, 8, 8]
    assert len({thread for _, thread in seen}) == cores


def test_a_fault_in_either_part_is_raised(cores):
    for bad in (0, 7):

        def compute(x: torch.Tensor, bad: int = bad) -> torch.Tensor:
            if bad in x.tolist():
                raise ValueError(f"row {bad}")
            return x

        with parts.working(LARGE), torch.no_grad(), pytest.raises(ValueError, match=f"row {bad}"):
            parts.in_parts(compute, [torch.arange(8)])


def test_a_part_without_a_gradient_of_some_weight(cores):
    """What no part reads has none; what one part does not read has the other's."""
    used, unused = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def compute(x: torch.Tensor) -> torch.Tensor:
        return x * used if x[0, 0] > 3 else x * 1.0

    with parts.working(LARGE):
        x = torch.arange(8.0)[:, None].expand(8, 3).clone().requires_grad_()
        parts.in_parts(compute, [x], [used, unused]).sum().backward()
    assert unused.grad is None
    assert torch.equal(used.grad, torch.full((3,), 4.0 + 5 + 6 + 7))


def test_the_users_number_of_threads_bounds_the_parts(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with threads.using(1), parts.working(10**9) as inside:
        assert (inside, crew().workers, crew().parts) == (1, 1, 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    with threads.using(4), parts.working(10**9) as inside:
        assert (inside, crew().workers) == (2, 2)
        assert torch.get_num_threads() == 2


def test_a_resumed_loop_keeps_its_number_of_threads(monkeypatch):
    for name in threads.CHOSEN_BY:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "cores", lambda: 8)
    with threads.using(8):
        with parts.working(10**9) as fresh:
            assert fresh == 4
        with parts.working(10**9, before=1) as resumed:
            assert resumed == 1


def test_trainings_in_several_threads_do_not_meet(cores):
    """One that is under way in another thread decides nothing here, nor does its end."""
    begun, go_on = threading.Event(), threading.Event()

    def other() -> None:
        with parts.working(LARGE):
            begun.set()
            go_on.wait(20)

    thread = threading.Thread(target=other)
    thread.start()
    begun.wait(20)
    assert crew().parts == 1
    with parts.working(LARGE):
        go_on.set()
        thread.join()
        assert crew().parts == 2
    assert crew().parts == 1


def test_a_part_is_not_divided_again(cores):
    sizes = []

    def outer(x: torch.Tensor) -> torch.Tensor:
        return parts.in_parts(lambda part: sizes.append(len(part)) or part, [x])

    with parts.working(LARGE), torch.no_grad():
        assert torch.equal(parts.in_parts(outer, [torch.arange(8)]), torch.arange(8))
    assert sizes == [4, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_fork_has_a_second_thread_of_its_own(cores):
    def go() -> None:
        with parts.working(LARGE), torch.no_grad():
            parts.in_parts(lambda x: x + 1, [torch.arange(8)])

    go()  # the parent's second thread is alive
    if not (child := os.fork()):
        threading.Timer(20, os._exit, [1]).start()
        go()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
