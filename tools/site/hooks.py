"""Hooks of mkdocs: pages that are made, and links that lead out of `docs/`."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools.site.links import ROOT_PAGES, for_site
from tools.site.reference import pages

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "build" / "sample"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, place in ROOT_PAGES.items():
        text = for_site((ROOT / source).read_text(encoding="utf-8"), source)
        files.append(File.generated(config, place, content=text))
    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    for path in sorted(SAMPLE.glob("*")):
        files.append(File.generated(config, f"sample/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.generated_by is not None:
        return markdown
    return for_site(markdown, f"docs/{page.file.src_uri}")
