"""Which candidate is taken, and what halves without an image say of such a choice."""

import numpy as np

from d2cp.debias.candidates import best, chosen_by_others, halves, scores


def test_the_worst_group_decides_and_neighbours_have_a_say() -> None:
    y, none = np.repeat([0, 1], 10), np.zeros(20)
    right = np.zeros((2, 4, 20), dtype=bool)
    right[0, 1] = True  # perfect once, between states that answer nothing
    right[1, :, :9] = right[1, :, 10:18] = True  # .9 and .8 throughout
    found = scores(right, y, none)
    assert np.isclose(found[0, 1], (1 + 1e-3) / 3)
    assert np.isclose(found[1, 0], 0.8 + 1e-3 * 0.85)
    assert best(right, y, none) == (1, 3), "the last of equal states"


def test_every_half_has_half_of_every_group_and_its_complement() -> None:
    groups = np.repeat([0, 1, 2], [10, 6, 4])
    made = halves(groups)
    for half, other in zip(made[::2], made[1::2], strict=True):
        assert np.array_equal(half, ~other)
        assert [int(half[groups == g].sum()) for g in range(3)] == [5, 3, 2]
    assert any(not np.array_equal(made[0], half) for half in made[2::2])


def test_luck_among_many_candidates_is_not_taken_for_skill() -> None:
    """200 coin tosses: the best of them looks good on the images that chose it, and is not."""
    groups, none, looks, is_ = np.repeat([0, 1], 50), np.zeros(100), [], []
    for seed in range(8):
        right = np.random.default_rng(seed).random((200, 1, 100)) < 0.5
        looks.append(right[best(right, groups, none)].mean())
        is_.append(chosen_by_others(right, groups, none, halves(groups)).mean())
    assert np.mean(looks) > 0.6
    assert abs(np.mean(is_) - 0.5) < 0.05


def test_a_candidate_that_is_better_is_found_by_every_half() -> None:
    rng, groups = np.random.default_rng(1), np.repeat([0, 1], 60)
    right = rng.random((5, 1, 120)) < 0.4
    right[3] = np.arange(120) % 10 > 0  # .9 in both groups
    share = chosen_by_others(right, groups, np.zeros(120), halves(groups))
    assert np.array_equal(share, right[3, 0])


def test_one_image_has_nobody_else_to_choose() -> None:
    right = np.array([[[False]], [[True]]])
    one = np.zeros(1, np.int64)
    assert chosen_by_others(right, one, np.zeros(1), halves(one)).tolist() == [1.0]
    two = np.zeros((1, 1, 2), dtype=bool)
    y = np.array([0, 1])
    assert chosen_by_others(two, y, np.zeros(2), halves(y)).tolist() == [0.0, 0.0]
