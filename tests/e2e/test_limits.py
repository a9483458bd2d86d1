import pytest

from d2cp.config import load_config
from d2cp.data import load_table
from d2cp.errors import ConfigError
from d2cp.pipeline.opening import bound


def test_each_limit_bounds_its_own_splits():
    limits = {"train_limit": 300, "val_limit": 50, "test_limit": 40}
    table = bound(load_table("cmnist"), load_config("demo", overrides=limits))
    counts = {name: len(table.rows(name)) for name in table.split_names}
    assert counts == {"train": 300, "val": 50, "test": 40, "test_balanced": 40}


@pytest.mark.parametrize("name", ["train_limit", "val_limit", "test_limit"])
def test_a_limit_below_0_is_refused(name):
    with pytest.raises(ConfigError, match=f"{name} = -3"):
        load_config("demo", overrides={name: -3})


def test_no_limit_keeps_every_image():
    table = load_table("cmnist")
    limits = {"train_limit": 0, "val_limit": 0, "test_limit": 0}
    assert bound(table, load_config("demo", overrides=limits)) is table
