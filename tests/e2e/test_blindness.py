"""No group label anywhere: true attributes do not reach anything that learns."""

import dataclasses

import numpy as np

from d2cp.api import run
from d2cp.config import load_config
from d2cp.core.files import read_json, sha256
from d2cp.data import load_table
from e2e_settings import nested

LEARNED = (
    ("disentangle", "model.safetensors"),
    ("mine", "mined.safetensors"),
    ("mine", "pseudo.csv"),
    ("environments", "bits.csv"),
    ("debias", "model.safetensors"),
)


def test_scrambled_or_absent_attributes_change_nothing_that_was_learned(tmp_path):
    config = load_config("demo", overrides=nested(**{"disentangle.steps": 3, "train_limit": 160}))
    table = load_table("cmnist")
    scrambled = np.random.default_rng(0).permutation(table.a)
    tables = {
        "true": table,
        "scrambled": dataclasses.replace(table, a=scrambled, expected_counts=None),
        "absent": table.without_attribute(),
    }
    for name, each in tables.items():
        run(each, out=tmp_path / name, config=config, control=False, report=False, quiet=True)
    for stage, file in LEARNED:
        digests = {sha256(tmp_path / name / stage / file) for name in tables}
        assert len(digests) == 1, f"{stage}/{file} depends on true attributes"
    assert "recall" not in read_json(tmp_path / "absent" / "mine" / "summary.json")
    results = read_json(tmp_path / "absent" / "evaluate" / "results.json")
    assert {r["grouping"] for r in results} == {"pseudo"}
