"""One list of columns: what is added to it is scored, printed, written and reported."""

import json

import pytest
from rich.console import Console

from d2cp.cli import result_tables
from d2cp.cli.compare import show_comparison
from d2cp.compare import comparison
from d2cp.evaluate import columns
from d2cp.evaluate.columns import COLUMNS, WORST, Column
from d2cp.evaluate.intervals import Interval
from d2cp.report import comparison_page, outcomes
from d2cp.report.build import write_report
from report_artifacts import write_comparison, write_run


def test_the_worst_group_is_named_by_what_the_groups_are():
    assert WORST.titled(["true"]) == "worst group (true groups)"
    assert WORST.titled(["pseudo", "pseudo"]) == "worst group (suspected groups)"
    assert WORST.titled(["class"]) == "worst class"
    assert WORST.titled(["class", "true"]) == "worst group"


@pytest.mark.parametrize(
    "grouping, words",
    [("true", "(true groups)"), ("pseudo", "(suspected groups)"), ("class", "worst class")],
)
def test_tables_say_which_groups_and_name_them(grouping, words, capsys):
    result = _result(grouping)
    console = Console(width=120)
    result_tables.show_results(console, [result])
    result_tables.show_groups(console, [result])
    result_tables.show_over_seeds(console, [result, {**result, "seed": 1}])
    said = capsys.readouterr().out
    assert said.count(words) == 2
    assert "cat, indoors" in said and "0,0" not in said


def test_a_new_column_is_one_edit(tmp_path, monkeypatch, capsys):
    """An entry in the list reaches results, tables, the CSV file and both reports."""
    import importlib

    from d2cp.data import load_table

    extra = Column(
        "best_group",
        "best group",
        lambda found: float(found.accuracy.max()),
        lambda found: Interval(float(found.accuracy.max()) - 0.1, 1.0),
    )
    monkeypatch.setattr(columns, "COLUMNS", (*COLUMNS, extra))
    for module in (comparison, outcomes, comparison_page, result_tables):
        importlib.reload(module)
    try:
        run = write_run(tmp_path / "run", load_table("cmnist", limit=60))
        assert "Best group" in write_report(run).read_text(encoding="utf-8")
        compared = write_comparison(tmp_path / "compare")
        assert "Best group" in write_report(compared).read_text(encoding="utf-8")
        whole = json.loads((compared.path / "compare.json").read_text())
        assert "best_group" in comparison.HEADER
        result_tables.show_results(Console(width=150), whole["results"])
        show_comparison(whole)
        assert capsys.readouterr().out.count("best group") >= 2
    finally:
        monkeypatch.undo()
        for module in (comparison, outcomes, comparison_page, result_tables):
            importlib.reload(module)


def _result(grouping: str) -> dict:
    figures = {column.key: 0.5 for column in COLUMNS}
    return {
        **{"method": "d2cp", "seed": 0, "split": "test", "selection": "rule"},
        **figures,
        "grouping": grouping,
        "groups": {"0,0": {"name": "cat, indoors", "n": 24, "accuracy": 0.5}},
        "intervals": {key: [0.4, 0.6] for key in figures},
    }
