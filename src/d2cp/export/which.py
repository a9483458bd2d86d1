"""Which of a run's classifiers is shipped: the recommended one, or the one asked for by name."""

from __future__ import annotations

from dataclasses import dataclass

from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.errors import ConfigError
from d2cp.evaluate.choice import read_choice

STAGES = {"d2cp": "debias", "erm": "erm"}
TITLES = {"d2cp": "D2CP", "erm": "plain training (ERM)"}


@dataclass(frozen=True)
class Which:
    stage: str
    name: str
    sentences: tuple[str, ...] = ()  # why, where the run itself has chosen


def which_model(run: RunDirectory, asked: str | None = None) -> Which:
    """A run without a control has nothing to compare with: it ships D2CP."""
    if asked is not None:
        if asked not in STAGES:
            raise ConfigError(f"--model {asked}", expected=" or ".join(STAGES))
        return Which(STAGES[asked], TITLES[asked])
    found = read_choice(run)
    if found is None:
        return Which(STAGES["d2cp"], TITLES["d2cp"])
    sentences = [visible(sentence) for sentence in found["sentences"]]
    if found["model"] == "erm":
        sentences.append("`--model d2cp` exports D2CP all the same.")
    return Which(STAGES[found["model"]], TITLES[found["model"]], tuple(sentences))
