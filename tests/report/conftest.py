from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from d2cp.data import load_table
from d2cp.report.build import write_report
from report_artifacts import write_comparison, write_hostile_run, write_run

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by playwright; a test without one says so and is skipped."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if found is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield opened
        opened.close()


class Opened:
    """A page opened from disk, with all that it complained about and asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("data:", "blob:")):
            self.requests.append(request.url)

    def overflow(self) -> int:
        """Pixels by which the page is wider than the screen."""
        wide: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return wide


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def opener(
        file: Path, *, width: int = 1200, height: int = 900, scheme: str = "light"
    ) -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        opened = Opened(context.new_page())
        opened.page.set_default_timeout(20_000)
        opened.page.goto(file.resolve().as_uri())
        return opened

    yield opener
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Reports by kind, each made once: run, audit, many (ten classes), hostile, compare."""
    folder = tmp_path_factory.mktemp("reports")
    made: dict[str, Path] = {}

    def get(kind: str) -> Path:
        if kind not in made:
            path = folder / kind
            if kind == "compare":
                run = write_comparison(path)
            elif kind == "hostile":
                run = write_hostile_run(path)
            else:
                table = load_table("cmnist10" if kind == "many" else "cmnist", limit=400)
                run = write_run(path, table, audit=kind == "audit")
            made[kind] = write_report(run)
        return made[kind]

    return get
