"""The repository's Markdown, cut into what can be checked: commands, code, links, headings."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_COMMAND = re.compile(r"(?:^|[;|]\s*|\bdo\s+|-m\s+|bin/)d2cp\s+([^;|>\n]*)", re.MULTILINE)
SHELL = ("", "sh", "bash", "console")


@dataclass(frozen=True)
class Command:
    """`d2cp` words as a page shows them; `whole` unless they are named in running text."""

    page: str
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.page}: d2cp {shlex.join(self.words)}"


def pages() -> dict[str, str]:
    """Text by path, for everything that is documentation."""
    root = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    found = [*root, *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in found}


def blocks(text: str, *languages: str) -> list[str]:
    return [body for language, body in _FENCE.findall(text) if language in languages]


def commands(page: str, text: str) -> list[Command]:
    found = []
    for body in blocks(text, *SHELL):
        for rest in _COMMAND.findall(body.replace("\\\n", " ")):
            found.append(Command(page, _words(rest), whole=True))
    for span in _SPAN.findall(_FENCE.sub("", text)):
        for rest in _COMMAND.findall(span):
            found.append(Command(page, _words(rest), whole=False))
    return [command for command in found if command.words]


def all_commands() -> list[Command]:
    return [command for page, text in pages().items() for command in commands(page, text)]


def _words(rest: str) -> tuple[str, ...]:
    plain = re.sub(r"\$\w+", "0", rest)  # a shell variable, such as a loop's seed
    return tuple(word for word in shlex.split(plain, comments=True) if word not in ("…", "..."))


def anchors(text: str) -> set[str]:
    """What `#…` may follow a page's name, by the rule that GitHub and the site share."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        copies = sum(known == slug or known.startswith(f"{slug}-") for known in found)
        found.add(f"{slug}-{copies}" if slug in found else slug)
    return found
