"""What a search draws: the settings as given, then the same rates for control and method."""

from dataclasses import replace

from d2cp.config.debias import DebiasConfig
from d2cp.debias.settings_search import (
    ALL,
    HEADS,
    PLAIN,
    RATES,
    SOLVED,
    SOLVED_CLASS,
    SOLVED_PLAIN,
    draw_settings,
    drawn_names,
)


def test_the_given_settings_are_among_the_draws_and_the_rest_is_within_bounds() -> None:
    first, *drawn = draw_settings(DebiasConfig(), 40, ALL, seed=3)
    assert first == DebiasConfig() and len(drawn) == 40
    for config in drawn:
        for name, (low, high) in RATES.items():
            if name not in ALL:
                continue
            assert 10**low <= getattr(config, name) <= 10**high
        assert HEADS[0] <= config.spurious_heads < HEADS[1]
    assert {config.spurious_heads for config in drawn} == {1, 2, 3}


def test_control_and_method_meet_the_same_rates() -> None:
    both = [draw_settings(DebiasConfig(), 5, names, seed=1) for names in (PLAIN, ALL)]
    for plain, whole in zip(*both, strict=True):
        assert (plain.lr, plain.weight_decay) == (whole.lr, whole.weight_decay)
        assert plain.spurious_heads == 1


def test_what_is_solved_is_not_drawn() -> None:
    whole = DebiasConfig()
    assert drawn_names(whole) == SOLVED
    assert drawn_names(replace(whole, spurious_fit="joint")) == ALL
    assert drawn_names(replace(whole, use_pseudo=False, dual_branch=False)) == PLAIN


def test_a_solved_class_head_has_a_decay_and_a_read_out_and_plain_training_meets_the_same_decays():
    whole = DebiasConfig(tier="features", class_fit="solved")
    control = replace(whole, use_pseudo=False, dual_branch=False, use_xrm=False)
    assert (drawn_names(whole), drawn_names(control)) == (SOLVED_CLASS, SOLVED_PLAIN)
    method = draw_settings(whole, 20, SOLVED_CLASS, seed=2)
    plainly = draw_settings(control, 20, SOLVED_PLAIN, seed=2)
    assert [c.class_decay for c in method] == [c.class_decay for c in plainly]
    assert {c.read_out for c in method} == {"balanced", "additive", "average"}
    low, high = RATES["class_decay"]
    assert all(10**low <= c.class_decay <= 10**high for c in method)
    assert all(0 <= c.weight_xrm_y <= 1 for c in method)
