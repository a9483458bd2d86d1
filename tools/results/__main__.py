"""Pages of figures from result files.

python -m tools.results                           make every page again
python -m tools.results --take REPRODUCED         tables of `d2cp reproduce`
python -m tools.results --take COMPARED --as NAME a comparison: results/compare/NAME.json
python -m tools.results --take RUN … --as NAME    runs, one a seed: results/measured/NAME.json
python -m tools.results --check                   fail where a page is not current

What a benchmark's --save wrote is a result file already: --save docs/results/measured/NAME.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.results.blocks import BLOCK, filled, require_tables_filed
from tools.results.commits import strangers
from tools.results.compared import take_comparison
from tools.results.files import ResultFileError, require
from tools.results.reproduced import page
from tools.results.runs import take_runs
from tools.results.sections import results_page

DOCS = Path(__file__).parents[2] / "docs"
DROPPED = ("cells", "version")  # of no use without the folder they were made in


def take(reproduced: Path, docs: Path, said: Mapping[str, str]) -> list[Path]:
    """Copies of all tables below `reproduced`, one file a table and data set; `said` is what older
    code did not write."""
    made = []
    for path in sorted(reproduced.glob("*/*/table.json")):
        whole = json.loads(path.read_text("utf-8"))
        names = dict.fromkeys(f["data"] for f in whole["figures"])
        target = docs / "results" / f"{whole['table']}-{'-'.join(names)}.json"
        kept = {key: value for key, value in whole.items() if key not in DROPPED}
        kept["backbone"] = Path(kept["backbone"]).name
        kept |= {key: value for key, value in said.items() if not kept.get(key)}
        require(kept, ("commit",), path)
        target.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        made.append(target)
    return made


def pages(docs: Path) -> dict[Path, str]:
    """What every page of figures should be."""
    made = {docs / "reproduced.md": page(docs), docs / "results.md": results_page(docs)}
    for path in sorted(docs.rglob("*.md")):
        text = path.read_text("utf-8")
        require_tables_filed(text, path)
        if path not in made and BLOCK.search(text):
            made[path] = filled(text, docs)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--take", type=Path, nargs="+", help="a folder, or runs of several seeds")
    parser.add_argument("--as", dest="name", help="what a comparison or runs are called in docs")
    parser.add_argument("--commit", default="", help="of the code that ran, where files lack it")
    parser.add_argument("--command", default="", help="what was typed, where compare.json lacks it")
    parser.add_argument("--check", action="store_true", help="fail where a page is not current")
    given = parser.parse_args()
    try:
        if given.take:
            said = {"commit": given.commit}
            for path in taken(given.take, given.name, said, given.command):
                print(path)
        made = pages(DOCS)
    except ResultFileError as error:
        raise SystemExit(str(error)) from error
    for path, text in made.items():
        if path.is_file() and path.read_text("utf-8") == text:
            continue
        if given.check:
            raise SystemExit(f"{path} is not what its result files say: python -m tools.results")
        path.write_text(text, "utf-8")
        print(path)
    for line in strangers(DOCS):
        print(f"note: {line}", file=sys.stderr)


def taken(
    folders: Sequence[Path], name: str | None, said: Mapping[str, str], command: str
) -> list[Path]:
    """Result files from folders that commands wrote."""
    first = folders[0]
    compared = (first / "compare.json").is_file()
    if not compared and not (first / "run.json").is_file():
        return [path for folder in folders for path in take(folder, DOCS, said)]
    if not name:
        raise ResultFileError("--take of a comparison or of runs wants --as NAME")
    if compared:
        return [take_comparison(first, DOCS, name, {**said, "command": command})]
    return [take_runs(folders, DOCS, name, said)]


if __name__ == "__main__":
    main()
