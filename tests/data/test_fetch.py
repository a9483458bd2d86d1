"""`d2cp fetch` against a server on this machine: cut short, resumed, redirected, wrong, hostile."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import random
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from d2cp.cli.app import app
from d2cp.data.fetch import catalogue
from d2cp.data.fetch.bring import bring
from d2cp.data.fetch.catalogue import CATALOGUE, File, Published
from d2cp.data.fetch.download import download
from d2cp.data.fetch.unpack import unpack
from d2cp.errors import ConfigError, D2CPError, DataError

BODY = bytes(range(256)) * 400
DIGEST = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Server = self.server  # type: ignore[assignment]
        server.asked.append((self.path, self.headers.get("Range")))
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/file")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/page":
            self._answer(200, b"<html>quota</html>", "text/html")
            return
        start = 0
        wanted = self.headers.get("Range")
        fresh = self.headers.get("If-Range") in (None, server.etag)
        if wanted and server.ranges and fresh:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(server.body):
                self._answer(416, b"", "text/plain")
                return
        self._answer(206 if start else 200, server.body[start:], "application/octet-stream", start)

    def _answer(self, status: int, body: bytes, kind: str, start: int = 0) -> None:
        server: Server = self.server  # type: ignore[assignment]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", server.etag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{start}")
        self.end_headers()
        cut, server.cut = server.cut, None
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    body, etag, ranges = BODY, '"one"', True
    cut: int | None = None  # bytes after which the next answer breaks off

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []

    def url(self, path: str = "/file") -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def get(server: Server, folder: Path, path: str = "/file", **about: object) -> str:
    file = File(name="x.bin", url=server.url(path), **about)  # type: ignore[arg-type]
    return download(file, folder / "x.bin", lambda *_: None)


def test_a_file_comes_whole_through_a_redirect(server, tmp_path):
    assert get(server, tmp_path, "/moved", size=len(BODY), sha256=DIGEST) == DIGEST
    assert (tmp_path / "x.bin").read_bytes() == BODY
    assert [path for path, _ in server.asked] == ["/moved", "/file"]
    assert [p.name for p in tmp_path.iterdir()] == ["x.bin"]


def test_a_transfer_that_broke_off_goes_on_by_range(server, tmp_path):
    server.cut = 30_000
    with pytest.raises(DataError, match=r"same command"):
        get(server, tmp_path)
    assert not (tmp_path / "x.bin").exists()
    there = (tmp_path / "x.bin.part").stat().st_size
    assert there == 30_000
    assert get(server, tmp_path, sha256=DIGEST) == DIGEST
    assert server.asked[-1] == ("/file", "bytes=30000-")


@pytest.mark.parametrize("change", ["version", "no ranges", "{", "[]", '{"url": 3}'])
def test_a_part_that_does_not_fit_is_not_gone_on_with(server, tmp_path, change):
    server.cut = 30_000
    with pytest.raises(DataError):
        get(server, tmp_path)
    if change == "version":
        server.body, server.etag = BODY[::-1], '"two"'
    elif change == "no ranges":
        server.ranges = False
    else:  # what was noted of the transfer is damaged
        (tmp_path / "x.bin.from").write_text(change)
    get(server, tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == server.body


def test_a_part_longer_than_the_file_begins_anew(server, tmp_path):
    server.cut = 30_000
    with pytest.raises(DataError):
        get(server, tmp_path)
    server.body = BODY[:20_000]
    get(server, tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == BODY[:20_000]


@pytest.mark.parametrize("about", [{"sha256": "0" * 64}, {"size": len(BODY) + 1}])
def test_a_wrong_file_is_thrown_away(server, tmp_path, about):
    with pytest.raises(DataError, match="not the published file"):
        get(server, tmp_path, **about)
    assert list(tmp_path.iterdir()) == []


def test_a_web_page_in_its_place_is_told(server, tmp_path):
    with pytest.raises(DataError, match="a web page"):
        get(server, tmp_path, "/page")
    with pytest.raises(DataError, match="leads to ftp"):
        _redirected("https://a.example/x", "ftp://b.example/x")


def _redirected(old: str, new: str) -> None:
    from urllib.request import Request

    from d2cp.data.fetch.download import _Safe

    _Safe().redirect_request(Request(old), io.BytesIO(), 302, "", {}, new)


def test_without_a_network_the_message_is_plain_and_soon(tmp_path, monkeypatch):
    import socket

    over = threading.Event()

    def silent(*_: object, **__: object) -> None:
        over.wait()  # a name server that does not answer
        raise OSError

    monkeypatch.setattr(socket, "create_connection", silent)
    with pytest.raises(DataError, match=r"nlp\.stanford\.edu cannot be reached"):
        bring(CATALOGUE["waterbirds"], tmp_path, lambda _: None, lambda *_: None)
    over.set()


def packed(members: dict[str, bytes], **links: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return buffer.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def locked(data: bytes) -> bytes:
    """The same archive, said to need a password."""
    return data.replace(b"PK\x03\x04\x14\x00\x00", b"PK\x03\x04\x14\x00\x01").replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
    )


def nameless(data: bytes) -> bytes:
    """The same archive, whose list has the name's one letter in another field."""
    entry = data.index(b"PK\x01\x02")
    return data[: entry + 28] + b"\0\0\1\0" + data[entry + 32 :]


def damaged(kind: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=f"w:{kind}") as archive:
        info = tarfile.TarInfo("good")
        info.size = 99_999
        archive.addfile(info, io.BytesIO(random.Random(0).randbytes(info.size)))
    data = bytearray(buffer.getvalue())
    data[-30_000:-29_000] = bytes(1000)
    return bytes(data)


@pytest.mark.parametrize("make", [packed, zipped])
def test_archives_are_unpacked_whole(tmp_path, make):
    (tmp_path / "a").write_bytes(make({"set/img/1.jpg": b"one", "set/metadata.csv": b"x"}))
    assert unpack(tmp_path / "a", tmp_path) == ["set"]
    assert (tmp_path / "set/img/1.jpg").read_bytes() == b"one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "set"]


@pytest.mark.parametrize(
    "data",
    [
        packed({"good": b"x", "../evil": b"x"}),
        packed({"good": b"x", "/etc/evil": b"x"}),
        packed({"good": b"x"}, link="/etc"),
        zipped({"good": b"x", "../evil": b"x"}),
        zipped({"good": b"x", "..\\evil": b"x"}),
        packed({"good": b"x" * 9999})[:-30],
        b"no archive",
        locked(zipped({"good": b"x" * 99})),
        packed({"a": b"x", "a/b": b"x"}),
        packed({"a/b": b"x", "a": b"x"}),
        damaged("xz"),
        damaged("bz2"),
        nameless(zipped({"a": b"x"})),
    ],
    ids=[
        *("up", "absolute", "link", "zip up", "zip backslash", "cut short", "no archive"),
        *("password", "file and folder", "folder and file", "damaged xz", "damaged bz2"),
        "no name",
    ],
)
def test_hostile_and_broken_archives_leave_nothing(tmp_path, data):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a").write_bytes(data)
    with pytest.raises(DataError):
        unpack(inside / "a", inside)
    assert [p.name for p in tmp_path.iterdir()] == ["inside"]
    assert [p.name for p in inside.iterdir()] == ["a"]


@pytest.fixture
def birds(server) -> Published:
    server.body = packed({"birds/metadata.csv": b"img_id\n", "birds/1.jpg": b"x"})
    file = File(name="birds.tar.gz", url=server.url(), unpack=True)
    return Published(name="birds", title="Birds", licence="Free as a bird.", files=(file,))


def test_what_came_is_recorded_and_a_second_start_fetches_nothing(server, birds, tmp_path):
    said: list[str] = []
    bring(birds, tmp_path, said.append, lambda *_: None)
    record = json.loads((tmp_path / "fetched.json").read_text())["birds.tar.gz"]
    digest = hashlib.sha256(server.body).hexdigest()
    assert record["sha256"] == digest and record["published"] is False
    assert any(digest in line and "none is published" in line for line in said)
    assert (tmp_path / "birds/1.jpg").is_file() and not (tmp_path / "birds.tar.gz").exists()
    asked = len(server.asked)
    bring(birds, tmp_path, said.append, lambda *_: None)
    assert len(server.asked) == asked


@pytest.mark.parametrize("text", ["{", "[]", '{"birds.tar.gz": {}}', '{"birds.tar.gz": 3}'])
def test_a_damaged_record_is_told_and_its_advice_works(server, birds, tmp_path, text):
    bring(birds, tmp_path, lambda _: None, lambda *_: None)
    good, path = (tmp_path / "fetched.json").read_text(), tmp_path / "fetched.json"
    path.write_text(text)
    with pytest.raises(D2CPError, match=f"delete {path} and start again"):
        bring(birds, tmp_path, lambda _: None, lambda *_: None)
    path.unlink()
    bring(birds, tmp_path, lambda _: None, lambda *_: None)
    assert path.read_text() == good


def test_a_file_in_the_place_of_the_folder_is_told(birds, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(D2CPError, match="cannot write in"):
        bring(birds, tmp_path / "file", lambda _: None, lambda *_: None)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_file_that_changed_since_the_first_time_is_refused(server, birds, tmp_path):
    bring(birds, tmp_path, lambda _: None, lambda *_: None)
    (tmp_path / "birds/1.jpg").unlink()
    (tmp_path / "birds/metadata.csv").unlink()
    (tmp_path / "birds").rmdir()
    server.body, server.etag = packed({"birds/2.jpg": b"y"}), '"two"'
    with pytest.raises(DataError, match="has changed since it was first fetched"):
        bring(birds, tmp_path, lambda _: None, lambda *_: None)


def test_a_file_that_one_brought_oneself_is_taken_if_it_is_the_published_one(
    server, birds, tmp_path
):
    (tmp_path / "birds.tar.gz").write_bytes(server.body)
    bring(birds, tmp_path, lambda _: None, lambda *_: None)
    assert (tmp_path / "birds").is_dir() and not server.asked
    other = tmp_path / "other"
    other.mkdir()
    (other / "birds.tar.gz").write_bytes(b"something else")
    strict = replace(birds, files=(replace(birds.files[0], sha256="0" * 64),))
    with pytest.raises(DataError, match="not the published file"):
        bring(strict, other, lambda _: None, lambda *_: None)


def test_a_disk_that_fills_up_is_told_and_gone_on_with(birds, tmp_path, monkeypatch):
    def full(archive: Path, folder: Path) -> list[str]:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("d2cp.data.fetch.bring.unpack", full)
        with pytest.raises(DataError, match="cannot be written: No space left on device"):
            bring(birds, tmp_path / "new", lambda _: None, lambda *_: None)
    said: list[str] = []
    bring(birds, tmp_path / "new", said.append, lambda *_: None)  # goes on with what has come
    assert "not fetched again" in said[0]


def test_the_licence_comes_first(birds, tmp_path, monkeypatch, server):
    monkeypatch.setattr(catalogue, "CATALOGUE", {"birds": birds})
    run = CliRunner().invoke(app, ["fetch", "birds", str(tmp_path)])
    assert isinstance(run.exception, ConfigError) and "--accept-licence" in str(run.exception)
    assert "Free as a bird." in run.output and not server.asked
    run = CliRunner().invoke(app, ["fetch", "birds", str(tmp_path), "--accept-licence"])
    assert run.exit_code == 0, run.output
    assert f"d2cp check {tmp_path}" in run.output and (tmp_path / "birds").is_dir()
    run = CliRunner().invoke(app, ["fetch", "bird", str(tmp_path)])
    assert isinstance(run.exception, D2CPError) and "did you mean 'birds'" in str(run.exception)


def test_every_published_file_has_an_encrypted_address_and_a_licence():
    for wanted in CATALOGUE.values():
        assert wanted.licence and wanted.files
        assert all(file.url.startswith("https://") for file in wanted.files)
        assert all(len(file.sha256) in (0, 64) for file in wanted.files)
