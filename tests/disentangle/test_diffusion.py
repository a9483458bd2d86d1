import math

import diffusers
import pytest
import torch

from d2cp.disentangle import diffusion as d


def test_schedules_agree_with_diffusers():
    ours = d.alphas_cumprod("scaled_linear", 1000)
    theirs = diffusers.DDIMScheduler(
        beta_start=0.0015, beta_end=0.0155, beta_schedule="scaled_linear"
    ).alphas_cumprod
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    ours = d.alphas_cumprod("cosine", 1000)
    theirs = diffusers.DDIMScheduler(beta_schedule="squaredcos_cap_v2").alphas_cumprod
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-6)


def test_noise_and_its_inverse_literally():
    bar = d.alphas_cumprod("cosine", 100)
    g = torch.Generator().manual_seed(0)
    z0, eps = torch.randn(2, 5, 3, 4, 4, generator=g)
    t = torch.tensor([0, 10, 50, 70, 90])
    z = d.add_noise(z0, eps, t, bar)
    for i, time in enumerate(t.tolist()):
        a = float(bar[time])
        torch.testing.assert_close(z[i], math.sqrt(a) * z0[i] + math.sqrt(1 - a) * eps[i])
        torch.testing.assert_close(
            d.predict_z0(z[i], eps[i], bar[time]), z0[i], rtol=1e-3, atol=1e-4
        )


def test_the_noise_follows_from_the_image():
    bar = d.alphas_cumprod("cosine", 100)
    z0, eps = torch.randn(2, 3, 2, 4, 4)
    t = torch.tensor([5, 50, 95])
    z = d.add_noise(z0, eps, t, bar)
    torch.testing.assert_close(d.noise_from_z0(z0, z, bar[t]), eps, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["mse", "l1"])
def test_weighted_loss_is_the_weighted_mean_of_each_image(kind):
    g = torch.Generator().manual_seed(1)
    a, b = torch.randn(2, 4, 3, 2, 2, generator=g)
    pairs = list(zip(a, b, strict=True))
    w = torch.tensor([1.0, 0.0, 2.0, 0.5])
    each = [(x - y).abs().mean() if kind == "l1" else ((x - y) ** 2).mean() for x, y in pairs]
    expected = sum(wi * e for wi, e in zip(w, each, strict=True)) / 4
    torch.testing.assert_close(d.noise_loss(a, b, kind, w), expected)
    torch.testing.assert_close(d.noise_loss(a, b, kind), sum(each) / 4)


def test_min_snr_weight_is_one_where_the_signal_is_weak():
    bar = d.alphas_cumprod("cosine", 1000)
    weight = d.min_snr_weight(bar, 5.0)
    snr = bar / (1 - bar)
    assert torch.all(weight[snr <= 5] == 1)
    torch.testing.assert_close(weight[snr > 5] * snr[snr > 5], torch.full_like(snr[snr > 5], 5.0))


def test_a_small_gamma_weighs_errors_of_the_image_alike():
    """A weighted ε-error equals the error of ẑ_0 wherever SNR > γ."""
    bar = d.alphas_cumprod("cosine", 1000)
    t = torch.tensor([50, 400, 800])
    z0, eps, wrong = torch.randn(3, 3, 2, 4, 4)
    z = d.add_noise(z0, eps, t, bar)
    error = (d.noise_from_z0(wrong, z, bar[t]) - eps).square().flatten(1).mean(1)
    weighted = error * d.min_snr_weight(bar[t], 0.01)
    expected = (wrong - z0).square().flatten(1).mean(1)
    torch.testing.assert_close(weighted, expected, rtol=1e-2, atol=1e-3)


def test_ddim_with_the_true_noise_returns_the_image_and_back():
    bar = d.alphas_cumprod("cosine", 1000)
    g = torch.Generator().manual_seed(2)
    z0, eps = torch.randn(2, 1, 3, 4, 4, generator=g)
    z = bar[700].sqrt() * z0 + (1 - bar[700]).sqrt() * eps
    down = d.ddim_step(z, eps, bar[700], bar[100])
    torch.testing.assert_close(
        down, bar[100].sqrt() * z0 + (1 - bar[100]).sqrt() * eps, rtol=1e-4, atol=1e-4
    )
    torch.testing.assert_close(d.ddim_step(down, eps, bar[100], bar[700]), z, rtol=1e-4, atol=1e-4)


def test_ddim_times_fall_from_last_to_first():
    assert d.ddim_times(1000, 5) == [999, 749, 500, 250, 0]
    assert d.ddim_times(3, 10) == [2, 1, 0]
    assert d.ddim_times(1000, 1) == [999]
    assert d.ddim_times(1, 5) == [0]


def test_biased_times_are_even_at_one_and_noisier_above():
    even = torch.linspace(0, 1, 1001)[:-1]
    counts = torch.bincount(d.biased_times(even, 10, 1.0), minlength=10)
    assert ((counts - 100).abs() <= 2).all()
    noisier = d.biased_times(even, 10, 3.0)
    assert noisier.min() == 0 and noisier.max() == 9
    assert abs(float((noisier >= 5).float().mean()) - 0.5 ** (1 / 3)) < 0.01
