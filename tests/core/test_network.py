"""The suite's block of the network, and how the hub is looked for."""

import socket

import pytest

from d2cp.core.network import address, hub_within_reach


def test_the_suite_cannot_reach_the_network():
    with pytest.raises(OSError, match="needs no network"):
        socket.create_connection(("203.0.113.1", 443), timeout=1)
    with pytest.raises(OSError, match="needs no network"):
        socket.getaddrinfo("example.org", 443)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(server.getsockname(), timeout=1).close()


def test_a_proxy_is_what_is_asked(monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert address("https://hub.example") == ("hub.example", 443)
    assert address("http://hub.example:8080") == ("hub.example", 8080)
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert address("https://hub.example") == ("proxy.example", 3128)
    monkeypatch.setenv("no_proxy", "hub.example")
    assert address("https://hub.example") == ("hub.example", 443)


def test_within_reach_is_what_answers(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", endpoint)
        assert hub_within_reach()
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        assert not hub_within_reach()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    assert not hub_within_reach()
