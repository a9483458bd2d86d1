"""What a search draws: the settings as given, then the same rates for control and method."""

from dataclasses import replace

from d2cp.config.debias import DebiasConfig
from d2cp.debias.settings_search import ALL, HEADS, PLAIN, RATES, SOLVED, draw_settings, drawn_names


def test_the_given_settings_are_among_the_draws_and_the_rest_is_within_bounds() -> None:
    first, *drawn = draw_settings(DebiasConfig(), 40, ALL, seed=3)
    assert first == DebiasConfig() and len(drawn) == 40
    for config in drawn:
        for name, (low, high) in RATES.items():
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
