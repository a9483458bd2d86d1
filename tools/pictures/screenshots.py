"""A report as a browser shows it, light and dark."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw

from tools.pictures.theme import THEMES

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
WIDE, TALL = 1180, 740
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
                viewport={"width": WIDE, "height": TALL},
                color_scheme="dark" if theme.name == "dark" else "light",
            )
            page.goto(report.resolve().as_uri())
            page.wait_for_load_state("networkidle")
            for name, part in PARTS.items():
                data = page.screenshot() if part is None else page.locator(part).screenshot()
                shot = Image.open(io.BytesIO(data)).convert("RGB")
                shown = shot.crop((0, 0, shot.width, min(shot.height, TALL)))
                edge = (0, 0, shown.width - 1, shown.height - 1)
                ImageDraw.Draw(shown).rectangle(edge, outline=theme.line)
                yield f"{name}-{theme.name}.webp", shown
            page.close()
        browser.close()
