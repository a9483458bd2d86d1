"""Cells of the grid of findings that a file keeps."""

from pathlib import Path

from findings import Kept


def test_a_kept_cell_is_not_run_again_and_all_are_summed_up_by_kind(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    first = Kept(path)
    first.get(["photos", "mark", 0.8, 7], lambda: [{"cue": "mark", "share": 0.8}])
    first.get(["photos", "permuted", 0], lambda: ("none", 0.04))
    first.get(["digits", "mark", 0.8, 7], lambda: [{"cue": "mark", "share": 0.5}])
    again = Kept(path)
    assert again.get(["photos", "mark", 0.8, 7], lambda: 1 / 0) == [{"cue": "mark", "share": 0.8}]
    assert again.of("photos") == ([{"cue": "mark", "share": 0.8}], [["none", 0.04]])
    assert again.of("digits") == ([{"cue": "mark", "share": 0.5}], [])
    assert len(path.read_text().splitlines()) == 3
