"""Laws of laying one configuration over another, for any nesting."""

from hypothesis import given
from hypothesis import strategies as st

from d2cp.config import config_from_dict, load_config, preset_names
from d2cp.config.strict import changed, merge, parse_assignment

KEYS = st.sampled_from("abcd")
TREES = st.recursive(
    st.dictionaries(KEYS, st.integers(), max_size=3),
    lambda inner: st.dictionaries(KEYS, st.one_of(st.integers(), inner), max_size=3),
    max_leaves=8,
)


def leaves(tree: dict, where: tuple[str, ...] = ()) -> dict[tuple[str, ...], int]:
    found = {}
    for key, value in tree.items():
        found |= leaves(value, (*where, key)) if isinstance(value, dict) else {(*where, key): value}
    return found


@given(TREES)
def test_nothing_over_it_and_itself_over_it_change_nothing(tree):
    assert merge(tree, {}) == tree == merge(tree, tree) == merge({}, tree)


@given(TREES, TREES)
def test_what_lies_above_wins_and_the_rest_shows_through(below, above):
    found = leaves(merge(below, above))
    upper = leaves(above)
    assert all(found[place] == value for place, value in upper.items())
    for place, value in leaves(below).items():
        covered = any(place[:n] in upper for n in range(1, len(place) + 1))
        covered |= any(other[: len(place)] == place for other in upper)
        assert covered or found.get(place, "gone") in (value, "gone")


@given(TREES, TREES, TREES)
def test_the_order_of_brackets_does_not_matter_where_kinds_agree(a, b, c):
    left, right = merge(merge(a, b), c), merge(a, merge(b, c))
    kinds = [leaves(t) for t in (a, b, c)]
    clash = any(
        p[: len(q)] == q and p != q for one in kinds for other in kinds for p in one for q in other
    )
    empty = "{}" in repr((a, b, c))
    assert clash or empty or left == right


@given(st.lists(KEYS, min_size=1, max_size=4), st.integers())
def test_an_assignment_sets_one_leaf(parts, value):
    assert leaves(parse_assignment(f"{'.'.join(parts)}={value}")) == {tuple(parts): value}


@given(st.sampled_from(preset_names()), st.integers(1, 10**6), st.floats(0.001, 1))
def test_a_changed_configuration_survives_the_trip_through_a_file(name, steps, lr):
    config = load_config(name)
    other = changed(config, {"disentangle.steps": steps, "debias.lr": lr})
    assert config_from_dict(other.to_dict()) == other
    assert changed(other, {"disentangle.steps": config.disentangle.steps}).debias.lr == lr
    assert other.disentangle.guide == config.disentangle.guide
