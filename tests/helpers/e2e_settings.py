"""The smallest settings with which every part of the method still runs for real."""

SETTINGS = {
    "train_limit": 240,
    "val_limit": 80,
    "test_limit": 80,
    "disentangle.steps": 6,
    "disentangle.batch": 16,
    "disentangle.concepts": 4,
    "disentangle.encoder.width": 8,
    "disentangle.encoder.hidden": 16,
    "disentangle.unet.channels": [32],
    "disentangle.unet.attention": [0],
    "disentangle.ddim_steps": 2,
    "disentangle.guide.steps": 20,
    "mine.bootstrap": 2,
    "mine.l2_grid": [0.1, 0.01],
    "mine.folds": 2,
    "environments.steps": 60,
    "environments.settings": 3,
    "debias.epochs": 1,
    "debias.epoch_size": 480,
    "debias.evaluate_every": 6,
    "debias.batch_size": 40,
    "debias.prompt_length": 2,
}


def arguments(**changes: object) -> list[str]:
    """The settings as `--set` options."""
    made = []
    for name, value in {**SETTINGS, **changes}.items():
        made += ["--set", f"{name}={value}"]
    return made


def nested(**changes: object) -> dict[str, object]:
    """The settings as nested overrides."""
    whole: dict[str, object] = {}
    for name, value in {**SETTINGS, **changes}.items():
        *path, last = name.split(".")
        place = whole
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return whole
