"""A report as a browser shows it, light and dark."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from tools.pictures.theme import THEMES

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
WIDE, SCALE = 1180, 1.0
PARTS = {"report-top": None, "report-effect": "#effect"}
"""Pictures by name, each with the part of the page it shows: the top, or an element."""


def screenshots(report: Path) -> Iterator[tuple[str, Image.Image]]:
    """(file name, picture) of every part in every look."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if chromium is None:
        raise SystemExit("no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for theme in THEMES:
            page = browser.new_page(
                viewport={"width": WIDE, "height": 860},
                color_scheme="dark" if theme.name == "dark" else "light",
                device_scale_factor=SCALE,
            )
            page.goto(report.resolve().as_uri())
            page.wait_for_load_state("networkidle")
            for name, part in PARTS.items():
                data = page.screenshot() if part is None else page.locator(part).screenshot()
                yield f"{name}-{theme.name}.png", Image.open(io.BytesIO(data)).convert("RGB")
            page.close()
        browser.close()
