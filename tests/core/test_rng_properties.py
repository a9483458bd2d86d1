"""Randomness is a function of (seed, stage, step) and of nothing else."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from d2cp.core.rng import derive, numpy_generator, permutation, seeded, torch_generator, uniforms

SEEDS, STAGES, STEPS = st.integers(0, 2**40), st.text(max_size=8), st.integers(0, 10**9)


@given(SEEDS, STAGES, STEPS)
def test_the_same_place_gives_the_same_draws_whatever_was_drawn_before(seed, stage, step):
    first = numpy_generator(seed, stage, step).random(3)
    numpy_generator(seed + 1, stage, step).random(5)
    np.random.default_rng().random(2)
    assert np.array_equal(first, numpy_generator(seed, stage, step).random(3))
    draws = [torch.rand(3, generator=torch_generator(seed, stage, step)) for _ in range(2)]
    assert torch.equal(*draws)


@given(SEEDS, STEPS, st.integers(1, 200))
def test_a_permutation_has_every_place_once(seed, step, n):
    assert sorted(permutation(seed, "s", step, n).tolist()) == list(range(n))


@given(SEEDS, STEPS, st.lists(st.integers(0, 10**6), min_size=1, max_size=30, unique=True))
def test_a_row_s_draws_do_not_depend_on_the_rows_beside_it(seed, step, rows):
    index = np.array(rows, dtype=np.int64)
    together = uniforms(seed, "s", step, index, 4)
    assert together.shape == (len(rows), 4)
    assert ((together >= 0) & (together < 1)).all()
    for place, row in enumerate(rows):
        alone = uniforms(seed, "s", step, np.array([row], dtype=np.int64), 4)
        assert np.array_equal(alone[0], together[place])


@given(st.lists(st.tuples(SEEDS, st.sampled_from(["a", "b"]), STEPS), max_size=50, unique=True))
def test_different_places_have_different_seeds(places):
    assert len({derive(*place) for place in places}) == len(places)


@given(SEEDS)
def test_seeded_initialisation_leaves_the_global_generator_alone(seed):
    before = torch.random.get_rng_state()
    with seeded(seed, "init"):
        first = torch.nn.Linear(2, 2).weight
    with seeded(seed, "init"):
        assert torch.equal(first, torch.nn.Linear(2, 2).weight)
    assert torch.equal(before, torch.random.get_rng_state())
