"""Each lens sees what it is for."""

import io
import math

import numpy as np
import torch
from PIL import Image

from d2cp.scan.bank import Bank
from d2cp.scan.lenses import saturation, simple, tint
from d2cp.scan.lenses.file_properties import facts_matrix, read_facts
from d2cp.scan.lenses.patches import EPSILON, STRIDE, learn_dictionary
from few_templates import few_templates


def noise(n=6, side=36, seed=0):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(seed))


def test_responses_are_cosines_of_whitened_patches():
    images = noise()
    dictionary = learn_dictionary(images, 5, 7, seed=0, patches=500)
    found = dictionary.responses(images)
    top, left = 3, 4
    patch = images[2, :, top * STRIDE : top * STRIDE + 5, left * STRIDE : left * STRIDE + 5]
    flat = patch.flatten() - patch.mean()
    normal = flat / torch.sqrt(flat.pow(2).mean() + EPSILON)
    white = dictionary.basis.flatten(1) @ normal - dictionary.offset
    literal = dictionary.centres @ white / white.norm()
    assert torch.allclose(found[2, :, top, left], literal, atol=1e-4)
    assert found.abs().max() <= 1 + 1e-4


def test_a_local_pattern_is_found_wherever_it_is():
    images = noise(2) * 0.2
    stamp = torch.zeros(3, 5, 5)
    stamp[:, 2] = 1
    stamped = stamp.repeat(1, 7, 7)[:, :34, :34][None]
    bank = Bank((learn_dictionary(stamped, 5, 40, seed=0, patches=500),), few_templates())
    one, two = images.clone(), images.clone()
    one[0, :, 4:9, 4:9] = stamp
    two[0, :, 20:25, 24:29] = stamp
    a, b = (bank.features(x)["local pattern"][0] for x in (one, two))
    plain = bank.features(images)["local pattern"][0]
    assert (a - b).norm() < (a - plain).norm()


def test_colour_is_a_histogram_and_blind_to_places():
    images = noise()
    found = simple.colour(images)
    assert torch.allclose((found[:, :64] ** 2).sum(1), torch.ones(len(images)), atol=1e-4)
    assert torch.allclose(found, simple.colour(images.flip(-1)), atol=1e-4)
    assert not torch.allclose(found, simple.colour(images.flip(1)), atol=1e-2)


def test_colour_taken_out_is_one_step_in_every_logarithm_of_saturation():
    images = noise(side=18).repeat_interleave(8, 2).repeat_interleave(8, 3)
    grey = simple.luma(images)[:, None].expand_as(images)
    half = 0.5 * images + 0.5 * grey
    step = saturation.saturation(half) - saturation.saturation(images)
    sizes = torch.cat([step[:, [0, 2]], step[:, 8:12], step[:, 18:19]], dim=1)
    assert torch.allclose(sizes, torch.full_like(sizes, -0.693), atol=0.06)
    back = saturation.give_saturation(half, images)
    assert torch.allclose(back, images, atol=0.02)


def test_shares_near_the_edge_of_what_can_be_shown_against_a_count():
    images = noise(side=16)
    counts = len(saturation.EDGE)
    found = saturation.saturation(images)[1, 19 : 19 + counts]
    shares = []
    for at in saturation.EDGE:
        near = 0
        for red, green, blue in images[1].flatten(1).T.tolist():
            grey = 0.299 * red + 0.587 * green + 0.114 * blue
            near += (grey - min(red, green, blue)) / (grey + 0.03) > at
        shares.append(near / 256 + saturation.LEAST)
    assert torch.allclose(found, torch.log(torch.tensor(shares)), atol=1e-4)
    assert 0.01 < shares[4] < 0.99
    grey = simple.luma(images)[:, None].expand_as(images)
    half = saturation.saturation(0.5 * images + 0.5 * grey)[:, 19 + 4 : 19 + counts]
    assert torch.allclose(half, torch.full_like(half, math.log(saturation.LEAST)))  # none beyond .5


def test_a_tint_moves_every_statistic_of_edges_and_greys_by_its_own_size():
    grey = 0.3 + 0.3 * noise(side=72).mean(1, keepdim=True).expand(-1, 3, -1, -1)
    images = grey + 0.1 * noise(side=72, seed=1)
    blue = images * torch.tensor([0.9, 1.0, 1.1])[:, None, None]
    # Red : green, red : blue, green : blue.
    gain = torch.log(torch.tensor([0.9, 0.9 / 1.1, 1 / 1.1]))
    moved = tint.edges(blue) - tint.edges(images)
    assert torch.allclose(moved, gain.repeat(4).expand_as(moved), atol=0.02)
    shadows = tint.lights(blue)[:, :3] - tint.lights(images)[:, :3]
    assert torch.allclose(shadows.mean(0), gain, atol=0.05)
    assert tint.greys(grey).abs().max() < 1e-5
    assert torch.allclose(tint.edge_hues(images).square().sum(1), torch.tensor(2.0), atol=1e-3)
    black = torch.zeros(2, 3, 28, 28, requires_grad=True)
    tint.tint(black).sum().backward()
    assert black.grad is not None and torch.isfinite(black.grad).all()


def test_blur_lowers_the_high_rings():
    images = noise(side=48)
    soft = torch.nn.functional.avg_pool2d(images, 3, 1, 1)
    before, after = simple.sharpness(images), simple.sharpness(soft)
    assert (after[:, simple.BANDS - 1] < before[:, simple.BANDS - 1]).all()


def test_blocks_of_eight_are_seen():
    draw = np.random.default_rng(0)
    smooth = np.array(
        Image.fromarray(draw.integers(0, 255, (9, 9, 3), dtype=np.uint8)).resize((72, 72))
    )
    phases = []
    for quality in (95, 5):
        buffer = io.BytesIO()
        Image.fromarray(smooth).save(buffer, "JPEG", quality=quality)
        image = np.array(Image.open(buffer))
        phases.append(simple.blockiness(torch.tensor(image).permute(2, 0, 1)[None] / 255.0)[0])
    assert phases[1][7] > phases[0][7] + 0.3  # between the last pixel of a block and the next


def test_a_frame_is_seen_at_the_border_alone():
    images = noise()
    framed = images.clone()
    framed[..., :1, :] = 0
    moved = (simple.border(framed) - simple.border(images)).abs()
    assert moved[:, :4].mean() > 0.1  # the thinnest strip on top
    assert moved[:, 8:12].mean() < moved[:, :4].mean() / 3  # and not at the bottom


def jpeg(quality, camera=None):
    image = Image.fromarray(np.full((20, 30, 3), 99, np.uint8))
    exif = Image.Exif()
    if camera:
        exif[271] = camera
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, exif=exif)
    return buffer.getvalue()


def test_file_facts_tell_quality_size_and_camera():
    facts = [read_facts(jpeg(q, c)) for q, c in ((90, "Acme"), (50, None), (30, "Acme"))]
    assert [round(f.numbers[4]) for f in facts] == [90, 50, 30]
    assert facts[0].words["camera"] == "Acme" and facts[1].words["camera"] == "none"
    assert np.isclose(np.exp(facts[0].numbers[2]), 1.5)
    matrix, names = facts_matrix(facts)
    assert "camera Acme" in names and "width" not in names  # what never varies is left out
    assert matrix.shape == (3, len(names))
    assert read_facts(b"not an image").words == {}
