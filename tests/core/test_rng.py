import numpy as np
import torch

from d2cp.core.rng import derive, numpy_generator, permutation, torch_generator, uniforms


def test_same_arguments_same_draw_and_any_other_argument_another():
    base = derive(0, "stage", 1)
    assert base == derive(0, "stage", 1)
    assert len({base, derive(1, "stage", 1), derive(0, "other", 1), derive(0, "stage", 2)}) == 4
    assert 0 <= base < 2**63


def test_generators_do_not_touch_global_state():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first = torch.rand(4, generator=torch_generator(0, "x", 5))
    second = torch.rand(4, generator=torch_generator(0, "x", 5))
    assert torch.equal(first, second)
    assert torch.equal(before, torch.random.get_rng_state())
    assert numpy_generator(0, "x").random() == numpy_generator(0, "x").random()


def test_uniforms_of_an_index_do_not_depend_on_its_neighbours():
    whole = uniforms(7, "augment", 2, np.arange(100), 5)
    alone = uniforms(7, "augment", 2, np.array([42]), 5)
    assert np.array_equal(whole[42], alone[0])
    assert whole.min() >= 0 and whole.max() < 1


def test_uniforms_are_uniform_and_uncorrelated():
    draws = uniforms(0, "augment", 0, np.arange(20_000), 4)
    assert np.allclose(draws.mean(0), 0.5, atol=0.01)
    assert np.allclose(draws.var(0), 1 / 12, atol=0.003)
    correlation = np.corrcoef(np.column_stack([draws, np.roll(draws[:, :1], 1, axis=0)]).T)
    assert np.abs(correlation - np.eye(5)).max() < 0.03


def test_permutation_is_one_and_changes_with_the_epoch():
    first, second = permutation(0, "s", 0, 50), permutation(0, "s", 1, 50)
    assert sorted(first) == list(range(50))
    assert not np.array_equal(first, second)
