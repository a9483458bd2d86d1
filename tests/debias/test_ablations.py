"""Ablations are what they say: what selects a state is named, and nothing mined leaks into a row
that has no mined labels."""

from dataclasses import replace

import numpy as np
import pytest

from d2cp.config import load_config
from d2cp.config.debias import DebiasConfig
from d2cp.data import load_table
from d2cp.debias.labels import Labels, selection_groups, selection_used
from d2cp.errors import ConfigError

WHOLE = DebiasConfig()
ROW_A = replace(WHOLE, use_pseudo=False, dual_branch=False, use_xrm=False)
ROW_C = replace(WHOLE, use_pseudo=False, dual_branch=False)


@pytest.mark.parametrize(
    ("config", "used"),
    [
        (WHOLE, "val_pseudo_groups"),
        (ROW_A, "val_worst_class"),
        (ROW_C, "val_xrm_groups"),
        (replace(WHOLE, use_xrm=False, pseudo_source="random"), "val_random_groups"),
        (replace(WHOLE, use_xrm=False, pseudo_source="true"), "val_true_groups"),
        (replace(ROW_C, selection="val_worst_class"), "val_worst_class"),
        (replace(WHOLE, selection="val_true_groups"), "val_true_groups"),
    ],
)
def test_the_rule_is_named_by_what_it_really_uses(config: DebiasConfig, used: str) -> None:
    assert selection_used(config) == used


def test_the_row_of_xrm_alone_is_not_selected_by_mined_groups() -> None:
    y = np.array([0, 0, 1, 1])
    labels = Labels(
        y=y,
        classes=2,
        train=np.arange(4),
        val=np.arange(4),
        a=np.array([0, 1, 0, 1]),
        y_xrm=np.array([0, 0, 0, 1]),
    )
    assert selection_groups(labels, selection_used(ROW_C)).tolist() == [0, 0, 2, 3]
    assert selection_groups(labels, selection_used(WHOLE)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "change", [{"use_xrm": False}, {"dual_branch": False}, {"pseudo_source": "true"}]
)
def test_a_comparison_refuses_settings_it_would_ignore(change: dict) -> None:
    from d2cp.compare.available import check_start

    config = load_config("demo", overrides={"debias": change})
    with pytest.raises(ConfigError, match=next(iter(change))):
        check_start(config, load_table("cmnist", limit=20))
