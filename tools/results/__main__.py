"""Pages of figures from result files.

python -m tools.results                           make every page again
python -m tools.results --take REPRODUCED         tables of `d2cp reproduce`
python -m tools.results --take COMPARED --as NAME a comparison, results/compare/NAME.json
python -m tools.results --check                   fail where a page is not current
python -m tools.results --bare                    tables of results.md that no file is named for
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tools.results.blocks import BLOCK, bare, filled
from tools.results.compared import take_comparison
from tools.results.reproduced import page

DOCS = Path(__file__).parents[2] / "docs"
DROPPED = ("cells", "version")  # of no use without the folder they were made in


def take(reproduced: Path, docs: Path) -> list[Path]:
    """Copies of all tables below `reproduced`, one file a table and data set."""
    made = []
    for path in sorted(reproduced.glob("*/*/table.json")):
        whole = json.loads(path.read_text("utf-8"))
        names = dict.fromkeys(f["data"] for f in whole["figures"])
        target = docs / "results" / f"{whole['table']}-{'-'.join(names)}.json"
        kept = {key: value for key, value in whole.items() if key not in DROPPED}
        kept["backbone"] = Path(kept["backbone"]).name
        target.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        made.append(target)
    return made


def pages(docs: Path) -> dict[Path, str]:
    """What every page of figures should be."""
    made = {docs / "reproduced.md": page(docs)}
    for path in sorted(docs.rglob("*.md")):
        text = path.read_text("utf-8")
        if path not in made and BLOCK.search(text):
            made[path] = filled(text, docs)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--take", type=Path, help="a folder of d2cp reproduce or d2cp compare")
    parser.add_argument("--as", dest="name", help="what a comparison is called in docs")
    parser.add_argument("--bare", action="store_true", help="list tables without a file")
    parser.add_argument("--check", action="store_true", help="fail where a page is not current")
    given = parser.parse_args()
    if given.bare:
        print("\n".join(bare((DOCS / "results.md").read_text("utf-8"))))
        return
    if given.take and (given.take / "compare.json").is_file():
        if not given.name:
            raise SystemExit("--take of a comparison wants --as NAME")
        print(take_comparison(given.take, DOCS, given.name))
    elif given.take:
        for path in take(given.take, DOCS):
            print(path)
    for path, text in pages(DOCS).items():
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        if given.check:
            raise SystemExit(f"{path} is not what its result files say: python -m tools.results")
        path.write_text(text, "utf-8")
        print(path)


if __name__ == "__main__":
    main()
