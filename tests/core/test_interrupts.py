"""Ctrl-C waits for the end of a step, once."""

import signal
import threading

import pytest

from d2cp.cli import main
from d2cp.core.interrupts import held_back


def test_the_first_waits_and_is_raised_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), held_back() as stopped:
        assert not stopped()
        signal.raise_signal(signal.SIGINT)
        assert stopped()
        done.append("saved")
    assert done == ["saved"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_second_acts_at_once():
    with pytest.raises(KeyboardInterrupt), held_back():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("went on after a second Ctrl-C")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_thread_and_a_handler_of_someone_else_are_left_alone():
    seen = []

    def work():
        with held_back() as stopped:
            seen.append(stopped())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
    mine = signal.signal(signal.SIGINT, lambda *_: seen.append("mine"))
    try:
        with held_back():
            signal.raise_signal(signal.SIGINT)
        assert seen == [False, "mine"]
    finally:
        signal.signal(signal.SIGINT, mine)


def test_the_command_says_that_it_goes_on_and_exits_130(tmp_path, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("d2cp.api.run", stop)
    with pytest.raises(SystemExit) as end:
        main(["run", "cmnist", "--out", str(tmp_path / "run")])
    assert end.value.code == 130
    assert "the same command goes on" in capsys.readouterr().err
