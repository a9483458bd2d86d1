"""Encoder, tokens, spaces, denoiser: shapes, and agreement with slow literal versions."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0

from d2cp.config.strict import changed
from d2cp.data.pixels import to_bytes, to_signed
from d2cp.disentangle.autoencoder import VQSpace, quantised
from d2cp.disentangle.batches import balancing_weights, batch_positions, weighted_positions
from d2cp.disentangle.concept_model import ConceptModel
from d2cp.disentangle.denoiser import Sketch, build_denoiser
from d2cp.disentangle.encoder import build_encoder
from d2cp.disentangle.latent_space import PixelSpace
from d2cp.disentangle.tokens import ConceptTokens, SharedTokens, build_tokens
from d2cp.errors import ConfigError


@pytest.mark.parametrize("kind", ["paper", "code"])
@pytest.mark.parametrize("size", [12, 16, 28, 36, 64])
def test_encoders_take_any_size(kind, size):
    encoder = build_encoder(kind, size, 5, 4, 8)
    assert encoder(torch.zeros(2, 3, size, size)).shape == (2, 5)


def test_paper_encoder_has_the_published_layers():
    encoder = build_encoder("paper", 64, 20, 64, 256)
    shapes = [tuple(p.shape) for n, p in encoder.named_parameters() if n.endswith("weight")]
    assert shapes == [
        (64, 3, 7, 7),
        (128, 64, 4, 4),
        (256, 128, 4, 4),
        (256, 256, 4, 4),
        (256, 256, 4, 4),
        (256, 4096),
        (256, 256),
        (20, 256),
    ]


def test_tokens_equal_one_network_per_concept():
    tokens = ConceptTokens(3, (5, 7), 4)
    scalars = torch.randn(6, 3)
    out = tokens(scalars)
    assert out.shape == (6, 3, 4)
    for i in range(6):
        for k in range(3):
            x = scalars[i, k].reshape(1)
            for layer in range(3):
                x = x @ tokens.weights[layer][k] + tokens.biases[layer][k, 0]
                x = F.elu(x) if layer < 2 else x
            torch.testing.assert_close(out[i, k], x)


@pytest.mark.parametrize("make", [ConceptTokens, SharedTokens])
def test_a_token_depends_on_its_own_scalar_only_and_concepts_differ(make):
    tokens = make(3, (8,), 4)
    scalars = torch.zeros(1, 3)
    moved = scalars.clone()
    moved[0, 1] = 2.0
    same = (tokens(scalars) == tokens(moved)).all(-1)[0]
    assert same.tolist() == [True, False, True]
    assert not torch.allclose(tokens(scalars)[0, 0], tokens(scalars)[0, 1])


@pytest.mark.parametrize("factor", [2, 4])
def test_pixel_space_loses_nothing(factor):
    pixels = torch.randint(0, 256, (2, 16, 16, 3), dtype=torch.uint8)
    space = PixelSpace(16, factor)
    latents = space.encode(to_signed(pixels.permute(0, 3, 1, 2)))
    assert latents.shape == (2, space.channels, space.side, space.side)
    assert torch.equal(to_bytes(space.decode(latents)), pixels)


def test_quantising_finds_the_nearest_vector():
    latents, codebook = torch.randn(2, 3, 4, 4), torch.randn(10, 3)
    out = quantised(latents, codebook)
    for b, i, j in np.ndindex(2, 4, 4):
        distances = [float(((latents[b, :, i, j] - c) ** 2).sum()) for c in codebook]
        torch.testing.assert_close(out[b, :, i, j], codebook[int(np.argmin(distances))])


def test_vq_space_decodes_what_its_codebook_allows(tiny):
    config = changed(tiny, {"space": "vq", "vq.channels": (8, 8, 8), "vq.codebook": 16})
    space = VQSpace(config)
    latents = space.encode(torch.zeros(1, 3, 16, 16))
    assert latents.shape == (1, 3, 4, 4) == (1, space.channels, space.side, space.side)
    snapped = quantised(latents, space.codebook)
    torch.testing.assert_close(space.decode(latents), space.decode(snapped, quantise=False))
    assert not torch.allclose(space.decode(latents), space.decode(latents, quantise=False))


def test_denoiser_attends_where_it_is_told_to(tiny):
    config = changed(tiny, {"unet.channels": (16, 16), "unet.attention": (1,)})
    unet = build_denoiser(config, 48, 4)
    names = [n for n, _ in unet.named_modules() if n.endswith("attn2")]
    assert any(n.startswith("down_blocks.1") for n in names)
    assert not any(n.startswith(("down_blocks.0", "up_blocks.1")) for n in names)


def test_attention_written_out_is_the_fused_kernels(tiny):
    unet = build_denoiser(tiny, 48, 4)
    assert {type(p) for p in unet.attn_processors.values()} == {AttnProcessor}
    draw = torch.Generator().manual_seed(0)
    z = torch.randn(2, 48, 4, 4, generator=draw)
    tokens = torch.randn(2, tiny.concepts, tiny.tokens.dim, generator=draw)
    written = unet(z, 5, tokens).sample
    unet.set_attn_processor(AttnProcessor2_0())
    torch.testing.assert_close(unet(z, 5, tokens).sample, written, atol=1e-5, rtol=1e-5)


def test_a_sketch_is_the_sum_of_each_tokens_own_picture():
    sketch = Sketch(3, 4, 2, 5)
    tokens = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0))
    pictures = sketch.pictures.weight.reshape(2, 5, 5, 3, 4)
    literal = sketch.pictures.bias.reshape(2, 5, 5).expand(6, 2, 5, 5).clone()
    for k in range(3):
        literal += torch.einsum("chwd,bd->bchw", pictures[..., k, :], tokens[:, k])
    torch.testing.assert_close(sketch(tokens), literal, atol=1e-5, rtol=1e-5)


def test_the_denoiser_reads_the_sketch(tiny):
    config = changed(tiny, {"unet.sketch": 3, "guide.concepts": 0})
    model = ConceptModel(config, PixelSpace(config.size, config.unshuffle), None, 0)
    side, channels = model.space.side, model.space.channels
    z, t = torch.zeros(1, channels, side, side), torch.tensor([5])
    tokens = model.concept_tokens(torch.zeros(1, config.concepts))
    before = model.denoise(z, t, tokens)
    assert before.shape == z.shape
    with torch.no_grad():
        model.sketch.pictures.bias.add_(1)
    assert not torch.allclose(before, model.denoise(z, t, tokens))


def test_token_gain_scales_the_weights_and_not_the_offsets():
    torch.manual_seed(0)
    plain = build_tokens("per-concept", 3, (4,), 5)
    torch.manual_seed(0)
    strong = build_tokens("per-concept", 3, (4,), 5, gain=4.0)
    torch.testing.assert_close(strong.weights[1], 4 * plain.weights[1])
    torch.testing.assert_close(strong.biases[1], plain.biases[1])


def test_batches_cover_every_image_before_repeating_one():
    n, batch = 10, 4
    seen = np.concatenate([batch_positions(3, "s", step, batch, n) for step in range(5)])
    assert sorted(seen[:10]) == list(range(10)) == sorted(seen[10:])
    assert not np.array_equal(seen[:10], seen[10:])
    assert len(batch_positions(3, "s", 0, 25, n)) == 25


def test_balanced_draws_make_cells_alike_up_to_the_limit():
    cells = np.repeat([0, 1, 3], [900, 90, 10])
    drawn = np.concatenate(
        [weighted_positions(1, "s", k, 100, balancing_weights(cells, 1e9)) for k in range(60)]
    )
    np.testing.assert_allclose(np.bincount(cells[drawn])[[0, 1, 3]] / 6000, 1 / 3, atol=0.03)
    limited = balancing_weights(cells, 5.0)
    even = 1000 / 2700
    np.testing.assert_allclose(
        limited[[0, 900, 990]] / limited[0], [1, 1000 / 270 / even, 5 / even]
    )
    assert abs(limited.mean() - 1) < 1e-9
    a, b = (weighted_positions(1, "s", 7, 20, limited) for _ in range(2))
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    "change",
    [
        {"space": "fourier"},
        {"size": 30},
        {"concepts": 0},
        {"concepts": 1},
        {"guide.balance": 0.5},
        {"loss": "l3"},
    ],
)
def test_bad_settings_are_named(tiny, change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        changed(tiny, change)
