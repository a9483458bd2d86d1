"""One file over HTTP: resumed where it was cut, verified, named only when it is whole."""

from __future__ import annotations

import http.client
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from d2cp.core.files import sha256, sync_directory, write_json
from d2cp.core.network import within_reach
from d2cp.core.typed_json import read_typed
from d2cp.data.fetch.catalogue import File
from d2cp.errors import DataError, RunError

BLOCK = 1 << 20
SILENCE = 60.0  # seconds without a byte after which a transfer is given up
AGENT = "d2cp"
Step = Callable[[int, int | None], None]  # bytes there, bytes in all


class _Safe(HTTPRedirectHandler):
    """Redirects are followed; one that would leave an encrypted connection is not."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        if urlsplit(newurl).scheme not in {"https", urlsplit(req.full_url).scheme}:
            raise DataError(f"{req.full_url} leads to {newurl}", expected="an encrypted address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(file: File, target: Path, step: Step) -> str:
    """Bring `file` to `target`; returns its SHA-256. What has arrived stays in `target.part`."""
    if not within_reach(file.url):
        host = urlsplit(file.url).hostname
        raise DataError(
            f"{host} cannot be reached",
            expected="a connection to the network",
            remedy=f"start again where there is one, or bring the file yourself: {file.url} "
            f"as {target}",
        )
    part, about = target.with_name(f"{target.name}.part"), target.with_name(f"{target.name}.from")
    try:
        _transfer(file, part, about, step)
    except (TimeoutError, URLError, http.client.HTTPException, ConnectionError) as error:
        reason = f"HTTP {error.code}" if isinstance(error, HTTPError) else str(error)
        raise DataError(
            f"{file.url}: {reason}",
            expected="the whole file",
            remedy="start the same command again: it goes on where the transfer ended",
        ) from error
    found = _verified(file, part, about)
    os.replace(part, target)
    about.unlink(missing_ok=True)
    sync_directory(target.parent)
    return found


def _known(about: Path) -> dict[str, str]:
    """What was noted of a transfer that broke off; nothing where the note is damaged."""
    try:
        return read_typed(about, dict[str, str], remedy="")
    except RunError:
        return {}


def _transfer(file: File, part: Path, about: Path, step: Step) -> None:
    """Append what is missing; begin anew where the server has another version or no ranges."""
    there = part.stat().st_size if part.is_file() and about.is_file() else 0
    known = _known(about) if there else {}
    if known.get("url") != file.url:
        there = 0
    if there and there == file.size:
        return
    headers = {"User-Agent": AGENT}
    if there:
        headers["Range"] = f"bytes={there}-"
        if known.get("version"):
            headers["If-Range"] = known["version"]
    opener = build_opener(_Safe)
    try:
        answer = opener.open(Request(file.url, headers=headers), timeout=SILENCE)
    except HTTPError as error:
        if error.code != 416 or not there:  # 416: there is nothing after what we have
            raise
        part.unlink()
        return _transfer(file, part, about, step)
    with answer:
        resumed = answer.status == 206 and _begins(answer.headers.get("Content-Range", "")) == there
        if answer.headers.get_content_type() == "text/html":
            raise DataError(
                f"{file.url} gave a web page, not the file",
                expected=f"{file.name}; publishers answer so when too many people ask",
                remedy=f"try again tomorrow, or bring {file.name} yourself",
            )
        there = there if resumed else 0
        length = answer.headers.get("Content-Length")
        whole = there + int(length) if length and length.isdigit() else file.size
        version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        write_json(about, {"url": file.url, "version": "" if version.startswith("W/") else version})
        with part.open("ab" if resumed else "wb") as out:
            while block := answer.read(BLOCK):
                out.write(block)
                there += len(block)
                step(there, whole)
            out.flush()
            os.fsync(out.fileno())
    if whole is not None and there < whole:
        raise ConnectionError(f"the transfer ended after {there:,} of {whole:,} bytes")


def _begins(content_range: str) -> int | None:
    """`bytes 5-9/10` → 5."""
    unit, _, rest = content_range.partition(" ")
    first = rest.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdigit() else None


def _verified(file: File, part: Path, about: Path) -> str:
    """A file that is not what was published is thrown away: going on with it would not mend it."""
    size, found = part.stat().st_size, sha256(part)
    for wrong, was, expected in (
        (file.size is not None and size != file.size, f"{size:,} bytes", f"{file.size} bytes"),
        (bool(file.sha256) and found != file.sha256, f"SHA-256 {found}", file.sha256),
    ):
        if wrong:
            part.unlink()
            about.unlink(missing_ok=True)
            raise DataError(
                f"{file.url} is not the published file: {was}",
                expected=expected,
                remedy="start again; if it stays so, the publisher has changed the file",
            )
    return found
