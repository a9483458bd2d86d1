"""Links that work in the repository, made to work in the site."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

ROOT_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
_MARKDOWN = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_HTML = re.compile(r'\b(src|srcset|href)="([^"]+)"')
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def is_inside(target: str) -> bool:
    """Whether a link names something of the repository rather than an address or an anchor."""
    return not re.match(r"[a-z]+:|#|//", target)


def outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    """`change` on the text, not on code blocks."""
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence.group()]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def links(markdown: str) -> list[str]:
    """Targets of all links and pictures outside code."""
    found: list[str] = []

    def collect(text: str) -> str:
        found.extend(m.group(3) for m in _MARKDOWN.finditer(text))
        found.extend(m.group(2) for m in _HTML.finditer(text))
        return text

    outside_fences(markdown, collect)
    return found


def repository_path(source: str, target: str) -> str:
    """What a link on the page `source` points at, from the repository's root, without anchor."""
    path = target.partition("#")[0]
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source


def site_path(path: str) -> str | None:
    """Where the site has a file of the repository, if it has it."""
    if path in ROOT_PAGES:
        return ROOT_PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def for_site(markdown: str, source: str) -> str:
    """The page with its links as the site needs them; what the site does not have is left as text.

    `source` is the page's path in the repository."""
    here = posixpath.dirname(site_path(source) or "")

    def moved(target: str) -> str | None:
        if not is_inside(target):
            return target
        place = site_path(repository_path(source, target))
        if place is None:
            return None
        _, mark, anchor = target.partition("#")
        return posixpath.relpath(place, here or ".") + mark + anchor

    def rewrite(match: re.Match[str]) -> str:
        target = moved(match.group(3))
        return match.group(2) if target is None else f"{match.group(1)}[{match.group(2)}]({target})"

    def change(text: str) -> str:
        text = _MARKDOWN.sub(rewrite, text)
        return _HTML.sub(lambda m: f'{m.group(1)}="{moved(m.group(2)) or ""}"', text)

    return outside_fences(markdown, change)
