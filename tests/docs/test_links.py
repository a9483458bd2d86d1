"""Links, file names and module names in README and the documentation lead somewhere."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

import documentation
from d2cp.pipeline.stages import STAGES
from documentation import ROOT, anchors, pages
from tools.site.links import ROOT_PAGES, for_site, is_inside, links, repository_path, site_path
from tools.site.reference import pages as reference_pages

PAGES = pages()
MADE = {f"docs/{place}" for place in reference_pages()} | {"docs/sample/index.md"}
SOURCES = re.compile(r"\b((?:src|tests|tools|benchmarks|docs)/[\w./\-]+)")
SHORT = re.compile(r"`([\w./]+\.(?:py|sh|jinja|css|js))`")
PLACES = (ROOT, ROOT / "src", ROOT / "src/d2cp", ROOT / "src/d2cp/report/templates")
MODULES = re.compile(r"\bd2cp(?:\.\w+)+")


@pytest.mark.parametrize("page", PAGES)
def test_links_and_their_anchors_resolve(page):
    for target in links(PAGES[page]):
        if not is_inside(target) and not target.startswith("#"):
            assert target.startswith("https://"), f"{page}: {target}"
            continue
        path = repository_path(page, target)
        assert (ROOT / path).exists(), f"{page}: {target}"
        anchor = target.partition("#")[2]
        if anchor:
            assert anchor in anchors(PAGES[path]), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_files_and_modules_that_are_named_exist(page):
    for name in SOURCES.findall(PAGES[page]):
        path = name.rstrip(".").split("::")[0]
        assert (ROOT / path).exists(), f"{page}: {path}"
    for name in SHORT.findall(PAGES[page]):
        assert any((place / name).exists() for place in PLACES), f"{page}: {name}"
    for name in MODULES.findall(PAGES[page]):
        assert resolves(name), f"{page}: {name}"


def resolves(name: str) -> bool:
    """A module, or something that a module or class of d2cp holds."""
    parts = name.split(".")
    if name == "d2cp.methods" or find_spec_of(name):
        return True
    for cut in range(len(parts) - 1, 0, -1):
        if find_spec_of(".".join(parts[:cut])):
            held = __import__(".".join(parts[:cut]), fromlist=[parts[cut]])
            return hasattr(held, parts[cut])
    return False


def find_spec_of(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, AttributeError):
        return False


def test_make_targets_that_are_named_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page, text in PAGES.items():
        named = set(re.findall(r"(?:^|`)make ([a-z]+)", text, re.MULTILINE))
        assert named <= targets, page


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"([\w\-/]+\.md)$", config, re.MULTILINE))
    written = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")}
    assert written <= listed
    made = {place.removeprefix("docs/") for place in MADE} | {"index.md"}
    assert listed <= written | made | set(ROOT_PAGES.values())


def test_links_are_moved_to_where_the_site_has_their_targets():
    text = "[a](../CONTRIBUTING.md#style) [b](../src/d2cp/errors.py) [c](results.md) ![p](x.png)"
    assert for_site(text, "docs/architecture.md") == (
        "[a](contributing.md#style) b [c](results.md) ![p](x.png)"
    )
    nested = '[a](../results.md#here) <img src="../pictures/p.png"> [d](https://example.org)'
    assert for_site(nested, "docs/guides/my-folder.md") == nested
    readme = '[r](docs/results.md) <source srcset="docs/pictures/p.png">\n```\n[r](docs/x.md)\n```'
    assert for_site(readme, "README.md") == (
        '[r](results.md) <source srcset="pictures/p.png">\n```\n[r](docs/x.md)\n```'
    )
    assert site_path("LICENSE") is None


def test_anchors_follow_the_headings():
    assert anchors("# Backbone, loader, speed\n```\n# no\n```\n## A `b` & c") == {
        "backbone-loader-speed",
        "a-b--c",
    }
    assert len(documentation.pages()) >= 12


def test_the_floor_plan_names_every_package_and_every_stage():
    text = PAGES["docs/architecture.md"]
    plan = text[text.index("## The floor plan") : text.index("## A run directory")]
    packages = {p.parent.name for p in (ROOT / "src/d2cp").glob("*/__init__.py")}
    assert {name for name in packages if f"`{name}`" not in plan} == set()
    line = next(body for body in documentation.blocks(text, "") if "→" in body)
    assert {stage.name for stage in STAGES if stage.name not in line} == set()
