"""The paper's tables and figures, declared: a row is what changes against the whole method.

No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from d2cp.config.strict import unknown_name
from d2cp.errors import ConfigError

# train: a model with changed settings; method: a rival by its name; recall, concepts: what stage 1
# found, no training; saliency: where a trained model looks
Kind = Literal["train", "method", "recall", "concepts", "saliency"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """`changes` are fields of `debias`. Rows with equal settings are one cell in all tables."""

    key: str
    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "train"
    tier: str = ""  # `prompts` or `features`, where the changes mean something in that tier alone
    ours: bool = False  # not the paper's: only where `--rows` names it


@dataclass(frozen=True)
class Metric:
    key: str
    heading: str


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """One table or figure of the paper. The first metric is what rows are ordered by."""

    name: str
    title: str
    rows: tuple[Row, ...]
    metrics: tuple[Metric, ...]
    sweep: str = ""  # what the rows are values of, where they are a sweep


WORST, MEAN = Metric("worst_group", "worst group"), Metric("mean", "mean")
PLAIN = {"use_pseudo": False, "dual_branch": False, "use_xrm": False}
SOLVED = {"spurious_fit": "solved", "spurious_heads": 4}  # as in the preset `photo-cpu`
ONLY_CBCM = {"dual_branch": False, "use_xrm": False}
COMPONENTS = (
    Row(key="a", name="(a) plain training", changes=PLAIN),
    Row(key="b", name="(b) CBCM", changes=ONLY_CBCM),
    Row(key="c", name="(c) XRM", changes={"use_pseudo": False, "dual_branch": False}),
    Row(key="d", name="(d) CBCM + XRM", changes={"dual_branch": False}),
    Row(key="e", name="(e) CBCM + DCD", changes={"use_xrm": False}),
    Row(key="f", name="(f) all"),
    Row(
        key="e-solved",
        name="(e), spurious branch solved first",
        changes={"use_xrm": False, **SOLVED},
        tier="features",
        ours=True,
    ),
    Row(
        key="f-solved",
        name="(f), spurious branch solved first",
        changes=SOLVED,
        tier="features",
        ours=True,
    ),
)
# Table 3 trains DCD alone: XRM is off, so its CBCM column is row (e) of Table 2.
LABELS = (
    Row(key="random", name="random labels", changes={"use_xrm": False, "pseudo_source": "random"}),
    Row(key="e", name="CBCM labels", changes={"use_xrm": False}),
    Row(key="true", name="true labels", changes={"use_xrm": False, "pseudo_source": "true"}),
)
LENGTHS = (1, 5, 10, 15, 20)
ALPHAS = (0.9, 1.2, 1.5, 1.8, 2.1)
METHODS = (
    *("erm", "group_dro", "pde", "cpt", "elrep", "crm", "jtt", "cnc", "c_adapter", "masktune"),
    *("ula", "gic", "xrm", "sas", "ppa", "gerne", "d2cp"),
)
LOOKED_AT = (
    Row(key="erm", name="ERM", changes=PLAIN, kind="saliency"),
    Row(
        key="group_dro",
        name="Group DRO, true groups",
        changes={**ONLY_CBCM, "pseudo_source": "true"},
        kind="saliency",
    ),
    Row(key="d2cp", name="D2CP", kind="saliency"),
)

REPRODUCTIONS = {
    made.name: made
    for made in (
        Reproduction(
            name="table1",
            title="Table 1: methods",
            rows=tuple(Row(key=name, name=name, kind="method") for name in METHODS),
            metrics=(WORST, MEAN),
        ),
        Reproduction(
            name="table2",
            title="Table 2: what each component adds",
            rows=COMPONENTS,
            metrics=(WORST, MEAN),
        ),
        Reproduction(
            name="table3",
            title="Table 3: labels of the spurious branch",
            rows=LABELS,
            metrics=(WORST, MEAN),
        ),
        Reproduction(
            name="prompt-length",
            title="Length of the prompts",
            rows=tuple(
                Row(
                    key=str(n),
                    name=f"length {n}",
                    changes={"prompt_length": n},
                    tier="prompts",
                )
                for n in LENGTHS
            ),
            metrics=(WORST, MEAN),
            sweep="prompt length",
        ),
        Reproduction(
            name="alpha",
            title="Sampling exponent α",
            rows=tuple(Row(key=str(x), name=f"α = {x}", changes={"alpha": x}) for x in ALPHAS),
            metrics=(WORST, MEAN),
            sweep="α",
        ),
        Reproduction(
            name="recall",
            title="Recall of the pseudo labels, group by group",
            rows=(Row(key="recall", name="recall", kind="recall"),),
            metrics=(Metric("recall", "recall"),),
        ),
        Reproduction(
            name="concepts",
            title="Concept swap and quantised reconstruction",
            rows=(Row(key="concepts", name="swap and reconstruction", kind="concepts"),),
            metrics=(Metric("share", "share or error"),),
        ),
        Reproduction(
            name="gradcam",
            title="Grad-CAM: share of the map inside the mask",
            rows=LOOKED_AT,
            metrics=(Metric("inside", "inside the mask"), Metric("area", "area of the mask")),
        ),
    )
}


def reproduction(name: str) -> Reproduction:
    if name not in REPRODUCTIONS:
        raise unknown_name(f"there is no table or figure {name!r}", name, set(REPRODUCTIONS))
    return REPRODUCTIONS[name]


def chosen(name: str, rows: str | None = None) -> Reproduction:
    """The paper's rows of a table, or rows by their keys with commas between."""
    whole = reproduction(name)
    if rows is None:
        return replace(whole, rows=tuple(row for row in whole.rows if not row.ours))
    known = {row.key: row for row in whole.rows}
    wanted = [key.strip() for key in rows.split(",") if key.strip()]
    if not wanted:
        raise ConfigError(f"{name} --rows {rows!r}", expected=f"some of {', '.join(known)}")
    for key in wanted:
        if key not in known:
            raise unknown_name(f"{name} has no row {key!r}", key, set(known))
    return replace(whole, rows=tuple(row for row in whole.rows if row.key in wanted))
