import io

from rich.console import Console

from d2cp.core import progress as module
from d2cp.core.progress import progress


def test_plain_lines_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(module, "LINE_SECONDS", 0.0)
    stream = io.StringIO()
    with progress(3, "concepts", console=Console(file=stream, force_terminal=False)) as bar:
        for _ in range(3):
            bar.step(64, loss=0.25)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("concepts  1/3  loss 0.25") and "s left" in lines[0]
    assert "3/3" in lines[-1] and "left" not in lines[-1]


def test_a_terminal_gets_a_bar_that_starts_where_the_run_resumed():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=120)
    with progress(10, "concepts", done=9, console=console) as bar:
        bar.step(loss=1.0)
    assert "10/10" in stream.getvalue()


def test_quiet_prints_nothing(capsys):
    with progress(2, "x", quiet=True) as bar:
        bar.step()
    assert bar.done == 1
    assert capsys.readouterr() == ("", "")
