"""Waterbirds: `metadata.csv` with img_filename, y, split and place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from d2cp.data.adapters import metadata_csv
from d2cp.data.assemble import Options, expect
from d2cp.data.delimited import read_rows
from d2cp.data.table import Table
from d2cp.errors import DataError

PUBLISHED_FOLDER = "waterbird_complete95_forest2water2"
LAYOUT = f"""\
[FOLDER/]{PUBLISHED_FOLDER}/
    metadata.csv             img_id,img_filename,y,split,place[,place_filename]
    001.Black_footed_Albatross/*.jpg
    …"""
COUNTS = {
    "train": {"0,0": 3498, "0,1": 184, "1,0": 56, "1,1": 1057},
    "val": {"0,0": 467, "0,1": 466, "1,0": 133, "1,1": 133},
    "test": {"0,0": 2255, "0,1": 2255, "1,0": 642, "1,1": 642},
}
_COLUMNS = {"img_filename", "y", "split", "place"}


def recognise(path: Path) -> bool:
    metadata = _find(path)
    return metadata is not None and metadata_csv.header_of(metadata) >= _COLUMNS


def load(path: Path, options: Options) -> Table:
    metadata = _find(path)
    if metadata is None:
        raise DataError(f"no metadata.csv in {path}", expected=f"\n{LAYOUT}")
    rows = read_rows(metadata)
    table = metadata_csv.table_from(metadata, rows, options, "waterbirds")
    if "img_id" in rows.header:
        ids = rows.column("img_id")
        if repeated := len(ids) - len(set(ids)):
            table = replace(
                table, warnings=(*table.warnings, f"{repeated} values of img_id are repeated")
            )
    if options.columns:
        return table
    if table.class_names == ("0", "1") and table.attribute_names == ("0", "1"):
        table = replace(
            table, class_names=("landbird", "waterbird"), attribute_names=("land", "water")
        )
    claimed = options.named or metadata.parent.resolve().name == PUBLISHED_FOLDER
    return expect(table, "waterbirds", COUNTS, claimed=claimed)


def _find(path: Path) -> Path | None:
    inner = path / PUBLISHED_FOLDER / "metadata.csv"
    return inner if inner.is_file() else metadata_csv.find_metadata(path)
