"""The command line as a user meets it: quick help, plain errors, exit codes."""

import json
import subprocess
import sys

import pytest

from d2cp.cli import main


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), out, err


def test_help_imports_no_heavy_library():
    heavy = ("torch", "transformers", "diffusers", "sklearn", "scipy", "accelerate")
    code = (
        "import sys\nfrom d2cp.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit: pass\n"
        f"print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage" in done.stdout
    assert done.stderr.strip() == "[]"


def test_version(capsys):
    code, out, _ = run(capsys, "--version")
    assert code == 0 and out.startswith("d2cp 0.")


def test_show_of_what_is_not_a_run(capsys, tmp_path):
    code, _, err = run(capsys, "show", str(tmp_path))
    assert code == 5
    assert "not a run directory" in err and "to do:" in err and "Traceback" not in err


def test_doctor_prints_json(capsys):
    code, out, _ = run(capsys, "doctor", "--json")
    found = {f["name"]: f["level"] for f in json.loads(out)}
    assert code == 0
    assert found["python"] == "ok" and found["packages"] == "ok" and found["device"] == "ok"


def test_results_as_json_on_every_command_that_makes_some():
    import typer

    from d2cp.cli.app import app

    commands = typer.main.get_command(app).commands
    for name in ("run", "discover", "compare", "show", "evaluate", "probe", "methods", "doctor"):
        assert "--json" in {option for p in commands[name].params for option in p.opts}, name


@pytest.mark.parametrize("text", ["x", "²", "-1", "1,,x", "9" * 5000])
def test_ranks_that_are_none_are_told(capsys, tmp_path, text):
    words = ("run", "cmnist", "--out", str(tmp_path / "run"), "--findings", text)
    code, _, err = run(capsys, *words)
    assert code == 2 and "is not a" in err and len(err) < 2000
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "cmnist", "--out", "LONG"),
        ("scan", "cmnist", "--out", "LONG"),
        ("show", "LONG"),
        ("predict", "LONG", "x.png"),
        ("cache", "--cache", "LONG"),
        ("fetch", "waterbirds", "LONG", "--accept-licence"),
    ],
    ids=lambda words: words[0],
)
def test_a_path_too_long_for_any_disk_is_told(capsys, words):
    code, _, err = run(capsys, *(word.replace("LONG", "x" * 5000) for word in words))
    assert code in (2, 5) and "name too long" in err
