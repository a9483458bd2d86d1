"""The JSON files of a run as types: what their readers rely on, checked by `core.typed_json`.

A file may hold more; what is listed here must be there and of this type.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, NotRequired, TypedDict

FileName = Annotated[str, re.compile(r"\w[\w.-]{0,199}")]
"""Of a file beside the one that names it."""
GroupKey = Annotated[str, re.compile(r"\d{1,9}(,\d{1,9})?")]
""""y,a", or "y" where no attribute is known."""
Groups = dict[GroupKey, float]
Verdict = Literal["found", "weak", "none"]


class FileEntry(TypedDict):
    bytes: int
    sha256: str


class Manifest(TypedDict):
    """RUN/<stage>/manifest.json."""

    stage: str
    inputs: str
    seconds: float
    files: dict[str, FileEntry]


class DataRecord(TypedDict):
    name: NotRequired[str]
    fingerprint: NotRequired[str]
    path: NotRequired[str]
    format: NotRequired[str]
    columns: NotRequired[dict[str, str]]
    images: NotRequired[str]


class ConfigRecord(TypedDict):
    seed: NotRequired[int]
    preset: NotRequired[str]
    backbone: NotRequired[str]
    disentangle: NotRequired[dict[str, Any]]
    mine: NotRequired[dict[str, Any]]
    environments: NotRequired[dict[str, Any]]
    debias: NotRequired[dict[str, Any]]
    scan: NotRequired[dict[str, Any]]


class RunRecord(TypedDict):
    """RUN/run.json."""

    version: NotRequired[str]
    data: NotRequired[DataRecord]
    config: NotRequired[ConfigRecord]
    compare: NotRequired[dict[str, Any]]


class DataSummary(TypedDict):
    """data/summary.json."""

    name: str
    format: NotRequired[str]
    fingerprint: str
    class_names: list[str]
    attribute_names: NotRequired[list[str]]
    counts: dict[str, dict[GroupKey, int]]
    warnings: NotRequired[list[str]]
    notes: NotRequired[list[str]]


class PictureRecord(TypedDict):
    file: str
    kind: str
    title: str
    caption: str


class MineSummary(TypedDict):
    """mine/summary.json."""

    verdict: Verdict
    sentence: str
    concepts: list[int]
    values: int
    threshold: NotRequired[float | list[float] | None]
    reasons: NotRequired[list[str]]
    evidence: NotRequired[dict[str, Any]]
    recall: NotRequired[dict[str, Groups]]
    balanced_accuracy: NotRequired[dict[str, float]]
    best_concept: NotRequired[dict[str, Any]]
    warnings: NotRequired[list[str]]
    pictures: NotRequired[list[PictureRecord]]
    findings: NotRequired[list[int]]
    value_names: NotRequired[list[str]]
    cells: NotRequired[list[list[int]]]  # the findings' own values behind each value
    mined: NotRequired[dict[str, Any]]


class GroupRecord(TypedDict):
    name: str
    n: int
    accuracy: float


class ResultRecord(TypedDict):
    """One entry of evaluate/results.json, of a cell and of compare.json."""

    method: str
    seed: int
    split: str
    selection: str
    grouping: Literal["true", "pseudo", "class"]
    worst_group: float
    mean: float
    train_weighted_mean: float
    intervals: dict[str, tuple[float, float]]
    groups: dict[GroupKey, GroupRecord]


class StandingRecord(TypedDict):
    worst_group: float
    group_mean: float
    error: float


class GainRecord(TypedDict):
    worst_group: float
    low: float
    high: float
    mean: float
    surely: float


class ChoiceRecord(TypedDict):
    """evaluate/choice.json."""

    model: Literal["d2cp", "erm"]
    sentences: list[str]
    erm: StandingRecord
    d2cp: StandingRecord
    gain: NotRequired[GainRecord]  # not in runs of version 0.1
    exchanged: NotRequired[GainRecord]  # where debias.transplants was used


class ModelLean(TypedDict):
    gap: float | None
    interval: tuple[float, float] | None


class Transplanted(TypedDict):
    """What the models say when a finding's cue is put into other images, in words."""

    sentence: NotRequired[str]


class ReliedFinding(TypedDict):
    rank: int
    name: str
    used: bool
    erm: NotRequired[ModelLean]
    d2cp: ModelLean
    change: NotRequired[float | None]
    change_interval: NotRequired[tuple[float, float] | None]
    rise: NotRequired[bool]
    beyond_chance: NotRequired[bool]
    transplant: NotRequired[Transplanted | None]
    sentence: str


class RelianceRecord(TypedDict):
    """evaluate/reliance.json."""

    images: int
    splits: list[str]
    findings: list[ReliedFinding]


class GradCamRecord(TypedDict):
    """One entry of evaluate/gradcam/gradcam.json."""

    row: int
    y: int
    pseudo: int
    erm: int
    d2cp: int
    before: str
    after: str


class WordRecord(TypedDict):
    word: str
    score: float
    beyond_chance: bool


class ValueWords(TypedDict):
    """`chance` is the score that a word has to beat."""

    value: str
    chance: float
    words: list[WordRecord]


class WordsRecord(TypedDict):
    """Words of a person's file that go with a finding, by so many images."""

    images: int
    values: list[ValueWords]
    sentence: str


class FindingRecord(TypedDict):
    rank: int
    name: str
    lens: str
    lenses: list[str]
    outcome: Verdict
    strength: float
    p_value: float
    agreement: float
    value_names: list[str]
    threshold: float | None
    stability: float
    evidence: dict[str, Any]
    reasons: list[str]
    words: NotRequired[WordsRecord]


class CopyRecord(TypedDict):
    image: str
    split: str
    copy_of: str
    copy_split: str


LabelRecord = TypedDict(
    "LabelRecord", {"image": str, "split": str, "class": str, "looks_like": str}
)


class ReviewRecord(TypedDict):
    copies: list[CopyRecord]
    copies_total: int
    labels: list[LabelRecord]
    labels_total: int


class ScannedData(TypedDict):
    name: str
    class_names: list[str]
    counts: dict[str, dict[GroupKey, int]]
    warnings: list[str]
    notes: list[str]


class FindingPicture(PictureRecord):
    finding: int


class FoundRecord(TypedDict):
    """What the search itself writes of scan/findings.json."""

    outcome: Verdict
    size: int
    notes: list[str]
    lens_accuracy: dict[str, float]
    findings: list[FindingRecord]


class WordsSource(TypedDict):
    """Where the words of the findings come from; `inputs` is all that they depend on."""

    file: str
    phrases: int
    template: str
    backbone: str
    inputs: str


class ScanRecord(FoundRecord):
    """scan/findings.json with what is shown beside the findings."""

    data: ScannedData
    cells: dict[str, dict[str, list[list[int]]]]
    pictures: list[FindingPicture]
    review: ReviewRecord
    words: NotRequired[WordsSource]


class VictimRecord(TypedDict):
    image: str
    split: str
    predicted: str


class LeanRecord(TypedDict):
    rank: int
    name: str
    gap: float | None
    interval: tuple[float, float] | None
    leans: bool
    classes: list[dict[str, Any]]
    victims: list[VictimRecord]
    sentence: str


class AnswersRecord(TypedDict):
    """scan/predictions.json."""

    file: str
    images: int
    splits: list[str]
    accuracy: float
    findings: list[LeanRecord]


class CostedResult(ResultRecord):
    notes: NotRequired[list[str]]


class MethodRecord(TypedDict):
    """A method over its seeds; the columns' deviations and the costs lie beside."""

    method: str
    group_labels: list[str]
    worst_group: float
    worst_group_std: float | None
    mean: float
    mean_std: float | None
    train_weighted_mean: float
    train_weighted_mean_std: float | None
    intervals: dict[str, tuple[float, float]]
    grouping: Literal["true", "pseudo", "class"]
    trainable: float
    passes: float
    seconds: float


class PairedRecord(TypedDict):
    worst_group: float
    interval: tuple[float, float] | None


class ComparisonRecord(TypedDict):
    """compare.json."""

    data: str
    results: list[CostedResult]
    summary: dict[str, list[MethodRecord]]
    paired: dict[str, dict[str, PairedRecord]]
    paper: NotRequired[dict[str, dict[str, float | None]] | None]
    skipped: NotRequired[dict[str, str]]


class CellRecord(TypedDict):
    """cells/<method>-<seed>.json."""

    identity: str
    results: list[ResultRecord]
    tier: str
    trainable: float
    passes: float
    seconds: float
    params: dict[str, Any]
    group_labels: list[str]
    mined_groups: bool
    notes: list[str]


class TrialRecord(TypedDict):
    """search/<method>-<draw>.json."""

    identity: str
    score: list[float]


class CellLine(TypedDict):
    split: str
    figures: dict[str, float]
    key: NotRequired[str]
    name: NotRequired[str]


class CellPicture(TypedDict):
    file: FileName
    title: str


class ReproducedCell(TypedDict):
    """cell.json of `d2cp reproduce`; `files`: SHA-256 of what lies beside it."""

    identity: str
    seconds: float
    lines: list[CellLine]
    results: NotRequired[list[ResultRecord]]
    pictures: NotRequired[list[CellPicture]]
    columns: NotRequired[list[str]]
    machine: NotRequired[str]
    commit: NotRequired[str]
    files: NotRequired[dict[FileName, str]]


class FetchedFile(TypedDict):
    """One entry of fetched.json."""

    url: str
    sha256: str
    published: bool
    gives: list[str]
