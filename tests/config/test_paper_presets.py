"""The `paper-*` presets against the paper, written out: its table of hyper-parameters, and the
published form of everything that our own presets extend."""

import pytest

from d2cp.config import load_config
from d2cp.config.mine import MineConfig

# Architecture, learning rate, weight decay, batch size, epochs, prompt length, scheduler, and
# optimiser, in the order of the table.
HYPER_PARAMETERS = {
    "waterbirds": ("ViT B/16", 0.1, 0.001, 64, 20, 10, "No", "SGD"),
    "celeba": ("ViT B/16", 0.01, 0.0001, 100, 20, 20, "StepLR", "SGD"),
    "cmnist": ("ViT B/16", 0.1, 0.001, 100, 10, 10, "No", "SGD"),
    "metashift": ("ViT B/16", 0.1, 0.1, 100, 20, 10, "StepLR", "SGD"),
}
ALPHA = {"waterbirds": 1.8, "celeba": 1.2, "metashift": 1.2}  # not published for cmnist
NAMES = {
    "ViT B/16": "google/vit-base-patch16-224-in21k",
    "No": "constant",
    "StepLR": "step",
    "SGD": "sgd",
}


@pytest.mark.parametrize("name", HYPER_PARAMETERS)
def test_every_value_of_the_hyper_parameter_table(name: str) -> None:
    config = load_config(f"paper-{name}")
    d = config.debias
    found = (d.lr, d.weight_decay, d.batch_size, d.epochs, d.prompt_length)
    architecture, *numbers, schedule, optimiser = HYPER_PARAMETERS[name]
    assert list(found) == numbers
    assert config.backbone == NAMES[architecture]
    assert (d.lr_schedule, d.optimiser) == (NAMES[schedule], NAMES[optimiser])
    assert d.alpha == ALPHA.get(name, d.alpha)


@pytest.mark.parametrize("name", HYPER_PARAMETERS)
def test_nothing_beyond_the_paper(name: str) -> None:
    config = load_config(f"paper-{name}")
    concepts, d, xrm = config.disentangle, config.debias, config.environments
    assert not config.scan.use
    assert (concepts.guide.concepts, concepts.guide.balance) == (0, 1)
    assert (concepts.guide.decorrelate, concepts.decorrelate) == (0, 0)
    assert not concepts.scalar_norm and concepts.predict == "eps" and concepts.min_snr == 0
    assert (concepts.noise_bias, concepts.tokens.gain, concepts.unet.sketch) == (1, 1, 0)
    assert (concepts.concepts, concepts.space, concepts.size) == (20, "vq", 64)
    assert config.mine == MineConfig.paper()
    assert (d.tier, d.head_bias, d.ema, d.selection) == ("prompts", False, 0, "val_true_groups")
    assert (d.use_pseudo, d.dual_branch, d.use_xrm, d.pseudo_source) == (True, True, True, "cbcm")
    assert (d.momentum, d.clip) == (0.9, 1.0)
    assert {d.weight_y, d.weight_a, d.weight_xrm_y, d.weight_xrm_a} == {1.0}  # an unweighted sum
    assert not xrm.standardise and xrm.momentum == 0.9
    assert (xrm.lr_exponents, xrm.batch_exponents) == ((-5, -3), (5, 7))
    assert xrm.weight_decay_exponents == (-6, -3)
    assert xrm.steps == (10001 if name == "celeba" else 5001)
    assert not (config.train_limit or config.val_limit or config.test_limit)


def test_celeba_is_the_178_crop_enlarged_to_224() -> None:
    celeba = load_config("paper-celeba").debias
    assert (celeba.resize, celeba.image_size) == (224, 224)
    assert load_config("paper-waterbirds").debias.resize == 256  # then the centre 224
