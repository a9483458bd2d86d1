"""Sentences of a page: figures in them are placeholders that a result file fills, nothing else.

{{ harm gain }}                          a figure of measured/harm.json
{{ birds test d2cp worst_group }}        of compare/birds.json; `paired`: D2CP minus the method
{{ table2-birds test e worst_group }}    of a table of `d2cp reproduce`
"""

from __future__ import annotations

import re
from pathlib import Path

from tools.results.files import ResultFileError, figure

PLACEHOLDER = re.compile(r"\{\{ ([^{}]+) \}\}")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"\]\([^)]*\)")
CODE = re.compile(r"`[^`]*[A-Za-z][^`]*`")  # a setting or a command; a number alone is a figure
# Numbers that are names, sizes of data, or settings. A number that was measured is none of these.
ALLOWED = re.compile(
    r"ViT-[A-Z]/\d+|DINOv2|95% (?:interval|over)|\[95%\]"
    r"|\b(?:[Tt]ables?|[Ff]igures?|[Ee]quations?|[Ss]tages?|[Ss]eeds?|[Ff]indings?|[Cc]lass(?:es)?"
    r"|[Ll]ength|version|rank|α of) \d+(?:\.\d+)?(?:(?:,| to| and| or) \d+(?:\.\d+)?)*"
    r"|\b\d[\d,]* (?:px|pixels|seeds|steps|epochs|classes|draws|passes|cores|places)\b"
    r"|(?<!of )\b\d[\d,]* (?:(?:training|validation|test|bird) )?(?:photographs|images|digits)\b"
    r"(?! of)"
)
NUMBER = re.compile(r"[+\-−±]? ?(?<![A-Za-z\d])\.?\d[\d.,]*%?")  # not in a name, as in D2CP
TABLE = re.compile(r"^\|.*\|$", re.MULTILINE)


def fill(text: str, docs: Path) -> str:
    return PLACEHOLDER.sub(lambda match: figure(docs, match.group(1).split()), text)


def bare(text: str) -> list[str]:
    """Numbers and lines of tables that no result file stands behind."""
    for pattern in (FENCE, COMMENT, PLACEHOLDER, LINK, CODE, ALLOWED):
        text = pattern.sub(" ", text)
    return [*TABLE.findall(text), *(m.group().strip() for m in NUMBER.finditer(text))]


def number(text: str) -> bool:
    """Whether a cell of a table is set to the right."""
    return not text or bool(re.match(r"[+\-−]?[\d.,]+( ±|%|$)", text))


def require_filed(text: str, where: str) -> None:
    if found := bare(text):
        raise ResultFileError(
            f"{where}: no result file stands behind {', '.join(found)}; a measured figure is a "
            "placeholder ({{ FILE FIGURE }}), a setting stands in `code`"
        )
