"""The parts of the report that need no browser."""

from __future__ import annotations

import itertools
import json
import shlex
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from d2cp.config import config_from_dict, load_config
from d2cp.core.files import read_json, write_json
from d2cp.core.run_directory import RunDirectory
from d2cp.core.text import visible
from d2cp.data import load_table
from d2cp.errors import RunError
from d2cp.evaluate.intervals import share_interval
from d2cp.report import words
from d2cp.report.build import write_report
from d2cp.report.cells import commonest_mistakes, confusions, typical_values
from d2cp.report.comparison_page import board, compare_page
from d2cp.report.encode import picture
from d2cp.report.html import embedded_json, policy
from d2cp.report.image_choice import KINDS, choose, kinds
from d2cp.report.outcomes import PLOT_GROUPS, outcomes
from d2cp.report.payload import gather
from d2cp.report.plots import score_histograms
from d2cp.report.rows import Rows
from d2cp.report.steps import collect_more, next_steps, run_command
from report_artifacts import write_comparison, write_hostile_run, write_run


def _rows(n: int, **columns: object) -> Rows:
    generator = np.random.default_rng(0)
    made = {
        "ids": [f"image-{i}" for i in range(n)],
        "split": np.array(["test"] * n),
        "y": generator.integers(0, 2, n),
        "a": None,
        "pseudo": generator.integers(0, 2, n),
        "score": generator.normal(size=n),
        "before": generator.integers(0, 2, n),
        "after": generator.integers(0, 2, n),
        "before_p": np.full(n, np.nan),
        "after_p": np.full(n, np.nan),
    }
    return Rows(**{**made, **columns})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("a\u202egpj.exe", "a[U+202E]gpj.exe"),
        ("line\nbreak\x00", "line[U+000A]break[U+0000]"),
        ("שלום café 鳥 🐦", "שלום café 鳥 🐦"),
        ("\udcff", "[U+DCFF]"),
    ],
)
def test_names_cannot_disguise_themselves(given: str, shown: str) -> None:
    assert visible(given) == shown


def test_words_for_figures() -> None:
    assert words.percent(0.9199) == "92.0%" and words.percent(None) == "–"
    assert words.duration(3725) == "1 h 2 min" and words.duration(61) == "1 min 1 s"
    assert words.flatten({"a": {"b": [1, 2]}, "c": [{"d": None}]}) == [
        ("a.b", "1, 2"),
        ("c[0].d", "none"),
    ]
    short = "d2cp show run --json"
    assert words.shell_lines(short) == short
    long = "d2cp run " + "x" * 70 + " --out y --seed 3"
    assert words.shell_lines(long).replace(" \\\n    ", " ") == long
    quoted = long.replace("--out y", "--out 'a --b'")
    assert words.shell_lines(quoted) == quoted


def test_typical_values_are_relative_to_the_data() -> None:
    counts = np.array([[90, 10], [60, 40]])  # value 0 is common in both, usual in the first
    assert typical_values(counts).tolist() == [0, 1]


def test_kinds_and_sample_cover_every_cell() -> None:
    n = 5000
    rows = _rows(n)
    kind = kinds(rows, [0.0])
    right, was = rows.after == rows.y, rows.before == rows.y
    assert (kind[right & ~was] == KINDS.index("mended")).all()
    assert (kind[~right & was] == KINDS.index("broken")).all()
    assert (kind[~right & ~was] == KINDS.index("wrong")).all()
    near = kind == KINDS.index("near")
    assert np.abs(rows.score[near]).max() <= np.quantile(np.abs(rows.score), 0.02)
    sample = choose(rows, kind, 100, [17, 4])
    assert sample.rows[:2].tolist() == [17, 4]
    assert len(set(sample.rows.tolist())) == 100 and sample.total == n
    cells = {(int(rows.y[r]), int(rows.pseudo[r]), int(kind[r])) for r in sample.rows}
    everywhere = {tuple(c) for c in np.stack([rows.y, rows.pseudo, kind], axis=1).tolist()}
    assert cells == everywhere
    assert len(choose(_rows(30), kinds(_rows(30), []), 400).rows) == 30


def test_confusions_count_answers_by_value() -> None:
    rows = _rows(400)
    found = confusions(rows, "test", 2, 2)
    literal = sum(rows.pseudo[i] == 1 and rows.y[i] == 0 and rows.after[i] == 1 for i in range(400))
    assert found[1].after[0, 1] == literal
    assert sum(int(c.before.sum()) for c in found) == 400
    mistakes = commonest_mistakes(found)
    sizes = [max(m.before, m.after) for m in mistakes]
    assert sizes == sorted(sizes, reverse=True) and all(m.y != m.answer for m in mistakes)


def test_outcomes_pair_the_models_and_prefer_the_balanced_split() -> None:
    def result(
        method: str, split: str, accuracy: float, selection: str = "rule"
    ) -> dict[str, object]:
        groups = {f"{y},{a}": {"n": 10, "accuracy": accuracy} for y in range(4) for a in range(4)}
        return {
            "method": method,
            "split": split,
            "selection": selection,
            "grouping": "true",
            "worst_group": accuracy,
            "mean": accuracy,
            "groups": groups,
            "intervals": {"worst_group": [0.1, 0.9]},
        }

    given = [
        result("erm", "test", 0.2),
        result("d2cp", "test", 0.7, "other"),
        result("d2cp", "test", 0.8),
        result("d2cp", "test_balanced", 0.9),
    ]
    balanced, test = outcomes(given, "rule", lambda key, grouping: f"{grouping} {key}")
    assert balanced.split == "test_balanced" and balanced.worst.before is None
    assert test.worst.before is not None and test.worst.after is not None
    assert (test.worst.before.value, test.worst.after.value) == (0.2, 0.8)
    assert test.worst.after.bounds == (0.1, 0.9)
    assert test.groups[0].after is not None and test.groups[0].after.bounds == share_interval(
        0.8, 10
    )
    assert len(test.groups) == 16 and len(test.plotted) == PLOT_GROUPS


def test_histogram_bars_hold_every_image() -> None:
    scores = np.array([-1.0, -1.0, 0.4, 2.0, np.nan])
    (drawn,) = score_histograms(scores, np.zeros(5, dtype=np.int64), ["<b>"], [0.0])
    assert drawn.n == 4
    assert "4 images: 2 below the threshold, 2 above" in drawn.drawing
    assert "&lt;b&gt;" in drawn.drawing and "<b>" not in drawn.drawing
    assert score_histograms(np.array([np.nan]), np.array([0]), ["x"], []) == []


def test_json_in_the_page_cannot_end_its_element() -> None:
    value = {"</script>": "<!-- \u2028 & \u202e"}
    text = str(embedded_json(value))
    assert not set("<>&\u2028\u202e") & set(text) and json.loads(text) == value


def test_policy_allows_nothing_from_outside() -> None:
    text = policy("style", "script")
    assert "default-src 'none'" in text and "http" not in text and "unsafe" not in text


def test_heavy_pictures_are_shrunk(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (600, 2000, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "big.png")
    big = picture(tmp_path / "big.png")
    assert (big.width, big.height) == (1200, 360) and big.uri.startswith("data:image/jpeg")
    assert len(big.data) < (tmp_path / "big.png").stat().st_size / 4
    Image.fromarray(noise[:20, :20]).save(tmp_path / "small.png")
    small = picture(tmp_path / "small.png")
    assert (small.width, small.height) == (20, 20) and small.data.startswith(b"\x89PNG")


class _Text(HTMLParser):
    """All text of a page, and its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.tags: list[str] = []

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs)


def _parsed(file: Path) -> _Text:
    parser = _Text()
    parser.feed(file.read_text(encoding="utf-8"))
    return parser


def test_report_of_a_run_says_what_the_artifacts_say(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", load_table("cmnist", limit=200))
    page = " ".join(_parsed(write_report(run)).text)
    results = read_json(run.path / "evaluate" / "results.json")
    for result in results:
        assert words.percent(result["worst_group"]) in page
    found = read_json(run.path / "mine" / "summary.json")
    for said in (found["sentence"], *found["warnings"], found["pictures"][0]["caption"]):
        assert said in page
    assert "2 unreadable images left out (0-4: 2)" in page
    assert "value 0 is mostly red, value 1 is mostly green" in page
    data = gather(run)
    assert collect_more(data) in page
    least = min(int(data.cells["train"][0, 0]), int(data.cells["train"][1, 1]))
    assert f"only {least} of 200" in collect_more(data)
    lines = next_steps(run)
    assert lines[0] == f"Report: {run.path / 'report.html'}"
    assert any("d2cp export" in line for line in lines)
    assert not list(tmp_path.rglob("*.tmp"))


def test_audit_report_stops_after_mining(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", load_table("cmnist", limit=60), audit=True)
    text = write_report(run, tmp_path / "elsewhere.html").read_text(encoding="utf-8")
    assert (
        'id="shortcut"' in text and 'id="effect"' not in text and 'id="filter-answer"' not in text
    )
    assert any("d2cp run cmnist" in line for line in next_steps(run))


def test_report_without_attributes_or_images(tmp_path: Path) -> None:
    """A data set that knows no attribute, and whose files are gone."""
    run = write_run(tmp_path / "run", load_table("cmnist", limit=60))
    for stage in ("data", "mine", "evaluate"):
        _without_attributes(run, stage)
    description = read_json(run.path / "run.json")
    description["data"] |= {"name": "photos", "path": str(tmp_path / "gone")}
    write_json(run.path / "run.json", description)
    page = " ".join(_parsed(write_report(run)).text)
    assert "The images could not be read again" in page
    assert "suspected groups" in page and "0-4, value 1" in page
    assert "usual in 0-4" in page and "mostly" not in page
    assert "Against the true attribute" not in page


def _without_attributes(run: RunDirectory, stage: str) -> None:
    """The stage as the pipeline writes it where no attribute is known."""
    before = run.path / stage
    with run.writing(stage, "fixture") as folder:
        for file in before.rglob("*"):
            if not file.is_file() or file.name == "manifest.json":
                continue
            target = folder / file.relative_to(before)
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.name == "summary.json":
                dropped = ("attribute_names", "recall", "balanced_accuracy")
                kept = {k: v for k, v in read_json(file).items() if k not in dropped}
                write_json(target, kept)
            elif file.name == "results.json":
                write_json(target, [{**r, "grouping": "pseudo"} for r in read_json(file)])
            elif file.name == "table.csv":
                lines = file.read_text(encoding="utf-8").splitlines()
                target.write_text("\n".join(line.rsplit(",", 1)[0] for line in lines) + "\n")
            else:
                target.write_bytes(file.read_bytes())


def test_hostile_names_leave_no_tag_of_their_own(tmp_path: Path) -> None:
    plain = _parsed(write_report(write_run(tmp_path / "a", load_table("cmnist", limit=16))))
    hostile = _parsed(write_report(write_hostile_run(tmp_path / "b")))
    assert set(hostile.tags) <= set(plain.tags)
    assert hostile.tags.count("script") == 2
    assert "49.png" not in " ".join(hostile.text), "a name is not a template"


def test_damaged_artifact_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", load_table("cmnist", limit=16), audit=True)
    table = run.path / "data" / "table.csv"
    table.write_text(table.read_text().replace("train", "trail", 1))
    with pytest.raises(RunError, match="has changed"):
        write_report(run)
    assert not (run.path / "report.html").exists()


def test_pictures_outside_the_run_are_not_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", load_table("cmnist", limit=16), audit=True)
    (tmp_path / "secret.png").write_bytes((run.path / "mine/pictures/swap.png").read_bytes())
    summary = read_json(run.path / "mine" / "summary.json")
    summary["pictures"][0]["file"] = "../../secret.png"
    _rewritten(run, summary)
    finding = gather(run).finding
    assert finding is not None and len(finding.pictures) == len(summary["pictures"]) - 1


def _rewritten(run: RunDirectory, summary: object) -> None:
    files = {
        file.relative_to(run.path / "mine"): file.read_bytes()
        for file in (run.path / "mine").rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }
    with run.writing("mine", "fixture") as folder:
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(content)
        write_json(folder / "summary.json", summary)


def test_run_command_rebuilds_the_configuration(tmp_path: Path) -> None:
    config = load_config("demo", overrides={"seed": 5, "debias": {"epochs": 2, "lr": 0.25}})
    described = {"config": config.to_dict(), "data": {"name": "my photos", "path": "/a b/photos"}}
    command = run_command(Path("out dir"), described, ("--corrections", "c.json"))
    given = shlex.split(command)
    assert given[:5] == ["d2cp", "run", "/a b/photos", "--out", "out dir"]
    options = dict(zip(given[5::2], given[6::2], strict=True))
    assigned = [b for a, b in itertools.pairwise(given) if a == "--set"]
    again = load_config(
        options["--preset"],
        assignments=assigned,
        overrides={"seed": int(options["--seed"]), "backbone": options["--backbone"]},
    )
    assert again == config == config_from_dict(described["config"])
    assert given[-2:] == ["--corrections", "c.json"]


def test_comparison_ranks_and_pairs(tmp_path: Path) -> None:
    run = write_comparison(tmp_path / "compare")
    whole = read_json(run.path / "compare.json")
    lines = {line.method: line for line in board(whole, "test").lines}
    assert list(lines) == ["group_dro", "d2cp", "xrm", "jtt", "erm"]
    assert lines["erm"].difference is not None and lines["d2cp"].difference is None
    assert lines["erm"].difference.value == pytest.approx(0.87)
    assert lines["xrm"].worst.bounds == pytest.approx((0.82, 0.84))
    assert lines["d2cp"].published[0] == pytest.approx(0.9199)
    assert lines["erm"].published[1] is None
    assert lines["group_dro"].group_labels == "train"
    page = compare_page(whole)
    assert "first of the 4 methods trained without group labels" in page["headline"]
    for result in whole["results"]:
        result["group_labels"] = [*result["group_labels"], "val"]
    selected = {line.method: line for line in board(whole, "test").lines}
    assert [m for m, line in selected.items() if line.trains_on_groups] == ["group_dro"]
    assert compare_page(whole)["headline"] == page["headline"]
    assert page["notes"] == [("jtt", "stopped early")]
    assert "stopped early" in write_report(run).read_text(encoding="utf-8")


def test_comparison_tells_what_was_left_out_and_who_had_mined_groups(tmp_path: Path) -> None:
    run = write_comparison(tmp_path / "compare")
    whole = read_json(run.path / "compare.json")
    whole["skipped"] = {"ppa": "it needs a text encoder"}
    for split in whole["summary"].values():
        for line in split:
            line["mined_groups"] = line["method"] == "d2cp"
            if line["method"] == "jtt":
                line["group_labels"] = ["val, fitted"]
    write_json(run.path / "compare.json", whole)
    lines = {line.method: line for line in board(whole, "test").lines}
    assert lines["d2cp"].group_labels == "mined" and not lines["d2cp"].trains_on_groups
    assert lines["jtt"].trains_on_groups
    page = write_report(run).read_text(encoding="utf-8")
    assert "Left out" in page and "it needs a text encoder" in page
