"""Is a host within reach? The hub's own library finds out by half a minute of retries."""

from __future__ import annotations

import socket
import threading
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

SECONDS = 2.0


def hub_within_reach(seconds: float = SECONDS) -> bool:
    """Whether the hub, or the proxy that leads to it, answers; False when the hub is switched off
    (HF_HUB_OFFLINE)."""
    from huggingface_hub import constants

    return not constants.HF_HUB_OFFLINE and within_reach(constants.ENDPOINT, seconds)


def within_reach(endpoint: str, seconds: float = SECONDS) -> bool:
    """Whether the host of an address, or the proxy that leads to it, answers. A name server that
    does not answer is not waited for."""
    host, port = address(endpoint)
    found: list[bool] = []

    def connect() -> None:
        try:
            socket.create_connection((host, port), timeout=seconds).close()
            found.append(True)
        except OSError:
            found.append(False)

    # A thread: `timeout` bounds the connection, not the look-up of the name before it.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(seconds + 0.5)
    return found == [True]


def address(endpoint: str) -> tuple[str, int]:
    """Host and port that a request to `endpoint` goes to first: a proxy where one is set."""
    whole = urlsplit(endpoint)
    proxy = getproxies().get(whole.scheme)
    if proxy and not proxy_bypass(whole.hostname or ""):
        whole = urlsplit(proxy if "//" in proxy else f"//{proxy}")
    default = 80 if whole.scheme == "http" else 443
    return whole.hostname or "", whole.port or default
