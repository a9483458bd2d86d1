"""No test reaches the network: a connection that leaves the machine is an error here. No test
depends on the clock: a busy machine is slow, not wrong. What a test draws without a generator of
its own is the same each time."""

from __future__ import annotations

import ipaddress
import random
import signal
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


class NetworkBlockedError(OSError):
    """Something tried to reach the network."""


def _local(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # a path: sockets of this machine
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return address[0] in ("localhost", "")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> None:
    """A shell's background job starts with Ctrl-C ignored: here it is as in the foreground."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def fixed_draws() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def blocked_network() -> Iterator[None]:
    patch = pytest.MonkeyPatch()
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    look_up = socket.getaddrinfo

    def guarded(real: Any) -> Any:
        def call(self: socket.socket, address: Any) -> Any:
            if not _local(address):
                raise NetworkBlockedError(f"the suite needs no network, {address} was asked for")
            return real(self, address)

        return call

    def named(host: Any, *arguments: Any, **options: Any) -> Any:
        if host is not None and not _local((host,)):
            raise socket.gaierror(f"the suite needs no network, {host} was looked up")
        return look_up(host, *arguments, **options)

    patch.setattr(socket.socket, "connect", guarded(connect))
    patch.setattr(socket.socket, "connect_ex", guarded(connect_ex))
    patch.setattr(socket, "getaddrinfo", named)
    yield
    patch.undo()
