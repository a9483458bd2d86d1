"""What `benchmarks/kill.py` kills: the commands, on the smallest settings where every part runs."""

from __future__ import annotations

SMALL = {
    "train_limit": 120,
    "val_limit": 40,
    "test_limit": 40,
    "disentangle.steps": 4,
    "disentangle.batch": 8,
    "disentangle.concepts": 3,
    "disentangle.encoder.width": 8,
    "disentangle.encoder.hidden": 16,
    "disentangle.unet.channels": [32],
    "disentangle.unet.attention": [0],
    "disentangle.ddim_steps": 2,
    "disentangle.guide.steps": 6,
    "mine.bootstrap": 2,
    "mine.l2_grid": [0.1],
    "mine.folds": 2,
    "environments.steps": 20,
    "environments.settings": 2,
    "debias.epochs": 1,
    "debias.max_steps": 4,
    "debias.batch_size": 16,
    "debias.prompt_length": 2,
    "debias.feature_draws": 1,
}


def settings() -> list[str]:
    return [word for k, v in SMALL.items() for word in ("--set", f"{k}={v}")]


JOBS: dict[str, list[str]] = {
    "prompts": ["run", "cmnist", *settings()],
    "features": ["run", "cmnist", "--set", "debias.tier='features'", *settings()],
    "cores": [  # batches that are worth two parts, a core each
        *("run", "cmnist", *settings()),
        *("--set", "disentangle.batch=96", "--set", "disentangle.guide.batch=96"),
    ],
    "compare": [
        *("compare", "cmnist", "--methods", "erm,group_dro,dfr", "--seeds", "2", "--budget", "240"),
        *("--tier", "features", "--selection", "val_worst_class", *settings()),
    ],
    "reproduce": [
        *("reproduce", "table2", "cmnist", "--rows", "a,e,f", "--seeds", "2"),
        *("--set", "debias.tier='features'", "--set", "disentangle.guide.concepts=1", *settings()),
    ],
    "jobs": [
        *("reproduce", "table2", "cmnist", "--rows", "a,f", "--seeds", "2", "--jobs", "2"),
        *("--set", "debias.tier='features'", "--set", "disentangle.guide.concepts=1", *settings()),
    ],
}
SHARES = {"prompts": 5, "features": 5, "cores": 3, "compare": 3, "reproduce": 3, "jobs": 1}
SEVERAL = ("cores", "jobs")  # more than one process is at work: they are also killed one at a time
