"""The plan of a table: passes as the paper counts epochs, what is missing, what is shared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from d2cp.config import load_config
from d2cp.data.open_table import load_table
from d2cp.data.place import Place
from d2cp.errors import ConfigError
from d2cp.reproduce import plan
from d2cp.reproduce.calibration import Pace
from d2cp.reproduce.cells import DataSet, cells_of
from d2cp.reproduce.tables import chosen
from image_files import csv_set


@pytest.fixture
def photographs(tmp_path):
    for name, data in csv_set(24).items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(data)
    place = Place.of(tmp_path / "data")
    config = load_config("here-photos", overrides={"backbone": "embedded"})
    return DataSet(
        place=place, table=place.table(), scale="here", config=config, out=tmp_path / "out"
    )


def paper_cell(photographs, row: str):
    """Row of Table 2 with the paper's Waterbirds settings on 8 training images."""
    config = load_config("paper-waterbirds", overrides={"backbone": "embedded"})
    data = DataSet(
        place=photographs.place,
        table=photographs.table,
        scale="paper",
        config=config,
        out=photographs.out,
    )
    return cells_of(chosen("table2", row), [data], 1)[0]


def test_passes_are_epochs_times_images_times_branches(photographs):
    assert plan.passes_of(paper_cell(photographs, "d")) == 20 * 8
    assert plan.passes_of(paper_cell(photographs, "f")) == 20 * 8 * 2
    assert plan.looks_of(paper_cell(photographs, "f")) == 20 * 8 + 8  # val each epoch, test once
    ours, theirs = (
        plan.passes_of(replace(paper_cell(photographs, "f"), row=chosen("table1", name).rows[0]))
        for name in ("d2cp", "erm")
    )
    assert (ours, theirs) == (20 * 8 * 2, 20 * 8)
    recall = cells_of(chosen("recall"), [photographs], 1)[0]
    assert plan.passes_of(recall) == plan.looks_of(recall) == 0
    features = cells_of(chosen("table2", "f"), [photographs], 1)[0]
    assert plan.passes_of(features) == 15 * 8 * 2 and plan.looks_of(features) == 0
    solved = cells_of(chosen("table2", "f-solved"), [photographs], 1)[0]
    assert plan.passes_of(solved) == 15 * 8  # what is solved takes no pass


def test_rows_with_equal_settings_are_counted_once_and_shared_stages_by_seed(photographs):
    cells = cells_of(chosen("alpha", "1.2"), [photographs], 2)
    cells += cells_of(chosen("table2", "f"), [photographs], 2)  # alpha is 1.0 in this preset
    cells += cells_of(chosen("table2", "f"), [photographs], 2)
    (one,) = plan.work(cells)
    assert len(one.cells) == 6 and len(one.left) == 4 and one.seeds == (0, 1)
    assert one.passes == 4 * 15 * 8 * 2
    pace = Pace(a_pass=0.5, a_look=0.25, concept_steps=10.0)
    assert plan.seconds(one, pace) == one.passes * 0.5 + 24 * 0.25 + 2 * 10.0
    text = "\n".join(plan.told(one, pace))
    assert "6, of which 4 are different" in text and "data/f/{0,1}" in text


def test_missing_images_are_counted(photographs, tmp_path):
    assert plan.missing_images(photographs.table) == []
    (tmp_path / "data/img/03.png").unlink()
    assert plan.missing_images(load_table(tmp_path / "data")) == ["img/03.png"]
    assert plan.missing_images(load_table("cmnist")) == []
    (one,) = plan.work(cells_of(chosen("recall"), [photographs], 1))
    text = "\n".join(plan.told(one, None))
    assert "MISSING: 1 of 24 images below" in text and "the first: img/03.png" in text
    waterbirds = replace(photographs, scale="paper")
    waterbirds.__dict__["benchmark"] = "waterbirds"  # as the published counts would say
    (one,) = plan.work(cells_of(chosen("recall"), [waterbirds], 1))
    assert "d2cp fetch waterbirds DIR" in "\n".join(plan.told(one, None))


def test_sizes_on_disk(photographs):
    config = photographs.config
    sides = {config.disentangle.size, config.debias.resize}
    assert plan.bytes_of_cache(photographs) == 24 * 3 * sum(side**2 for side in sides)
    tokens = np.zeros((24, config.disentangle.concepts, 1 + config.disentangle.tokens.dim), "f4")
    features = np.zeros((24, plan.FEATURE_WIDTH), "f4")
    assert plan.bytes_of_seed(photographs) == tokens.nbytes
    assert plan.bytes_of_features(photographs) == features.nbytes


def test_features_are_counted_once_for_all_seeds_that_see_the_same_images(photographs):
    assert (
        plan.feature_sets(photographs, (0, 1, 2)) == 1 and plan.feature_sets(photographs, ()) == 0
    )
    limited = replace(photographs, config=replace(photographs.config, train_limit=4))
    assert plan.feature_sets(limited, (0, 1, 2)) == 3
    made = photographs.folder / "seeds/0/features/manifest.json"
    made.parent.mkdir(parents=True)
    made.write_text("{}")
    assert plan.feature_sets(photographs, (1, 2)) == 0


def test_two_workers_on_one_cell_run_it_once(photographs, monkeypatch):
    import threading

    from d2cp.reproduce.run_cell import Workshop

    (cell,) = cells_of(chosen("recall"), [photographs], 1)
    inside, seconds_turn, made = threading.Event(), threading.Event(), []

    def slow(self, cell, folder):
        made.append(threading.get_ident())
        inside.set()
        assert seconds_turn.wait(60)  # the second has started: it waits, or comes in here too
        return {"identity": cell.identity, "seconds": 0.0, "lines": []}

    monkeypatch.setattr(Workshop, "_make", slow)
    results: list[dict] = []
    first, second = (
        threading.Thread(target=lambda: results.append(Workshop().run(cell))) for _ in range(2)
    )
    first.start()
    assert inside.wait(60)
    second.start()
    seconds_turn.set()
    first.join()
    second.join()
    assert len(made) == 1 and len(results) == 2 and results[0] == results[1]
    assert results[0]["identity"] == cell.identity


def test_a_row_whose_settings_nothing_reads_is_refused(photographs):
    with pytest.raises(ConfigError, match=r"row 1, on data: .* debias.tier is 'features'"):
        cells_of(chosen("prompt-length"), [photographs], 1)
    prompts = replace(photographs.config.debias, tier="prompts")
    data = replace(photographs, config=replace(photographs.config, debias=prompts))
    assert len(cells_of(chosen("prompt-length"), [data], 1)) == 5
    with pytest.raises(ConfigError, match="row f-solved"):
        cells_of(chosen("table2", "f,f-solved"), [data], 1)
