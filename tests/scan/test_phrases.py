"""A file of words: what is read of it, and what is told before anything long starts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from d2cp.api import scan
from d2cp.errors import BackboneError, ConfigError, D2CPError, DataError
from d2cp.scan.phrases import MAX_BYTES, MOST, open_phrases, read_phrases
from tiny_clip import write_clip


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip"))


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "words.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_blank_lines_comments_and_repetitions_are_skipped(tmp_path: Path) -> None:
    file = write(tmp_path, "\ufeff# seas\n\nsea\r\n  open   water \n#land\nSea\nopen water\n été")
    assert [(p.line, p.text) for p in read_phrases(file)] == [
        (3, "sea"),
        (4, "open water"),
        (8, "été"),
    ]


@pytest.mark.parametrize(
    "content, said",
    [
        ("", "has no words"),
        ("\n# nothing\n \n", "has no words"),
        (b"caf\xe9\n", "cannot be read"),
        ("\n".join(f"w{n}" for n in range(MOST + 1)), "2,001 words"),
        ("#" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    with pytest.raises(DataError, match=said) as error:
        read_phrases(write(tmp_path, content))
    assert "2,000" in error.value.expected and "UTF-8" in error.value.expected
    assert error.value.remedy


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_phrases(tmp_path / "nowhere.txt")
    with pytest.raises(DataError, match="not a file"):
        read_phrases(tmp_path)


def test_a_phrase_too_long_for_the_tokenizer_is_told_by_its_line(
    tmp_path: Path, clip: Path
) -> None:
    """Letter by letter: "a photo of", start and end are 10 of the 40 tokens."""
    assert open_phrases(write(tmp_path, "sea\n" + "a" * 30), str(clip)).texts[1] == "a" * 30
    with pytest.raises(DataError, match=r"line 3 of .*41 tokens") as error:
        open_phrases(write(tmp_path, "sea\n\n" + "a" * 31), str(clip))
    assert "at most 40 tokens" in error.value.expected


def test_the_identity_follows_phrases_weights_and_tokenizer(tmp_path: Path, clip: Path) -> None:
    file = write(tmp_path, "sea\nland\n")
    first = open_phrases(file, str(clip)).identity
    assert open_phrases(write(tmp_path, "#\nsea\nland\nland"), str(clip)).identity == first
    assert open_phrases(write(tmp_path, "sea\nsand\n"), str(clip)).identity != first
    other = tmp_path / "other"
    shutil.copytree(clip, other)
    assert open_phrases(write(tmp_path, "sea\nland\n"), str(other)).identity == first
    vocabulary = (other / "vocab.json").read_text()
    (other / "vocab.json").write_text(vocabulary.replace('"s"', '"?"').replace('"a"', '"s"'))
    assert open_phrases(file, str(other)).identity != first


def broken_clip(clip: Path, folder: Path, how: str) -> str:
    if how == "embedded":
        return how
    shutil.copytree(clip, folder)
    if how == "no tokenizer":
        (folder / "vocab.json").unlink()
    elif how == "broken tokenizer":
        (folder / "vocab.json").write_text("[")
    elif how == "nothing":
        shutil.rmtree(folder)
    return str(folder)


@pytest.mark.parametrize(
    "how, said",
    [
        ("embedded", "no text tower"),
        ("no tokenizer", "no tokenizer"),
        ("broken tokenizer", "cannot be loaded"),
        ("nothing", "no backbone folder"),
    ],
)
def test_a_backbone_that_is_no_whole_clip_is_told(
    tmp_path: Path, clip: Path, how: str, said: str
) -> None:
    place = broken_clip(clip, tmp_path / "broken", how)
    with pytest.raises(BackboneError, match=said) as error:
        scan("no data", out=tmp_path / "run", words=write(tmp_path, "sea"), backbone=place)
    assert error.value.expected and error.value.remedy
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words, backbone", [("words.txt", None), (None, "clip")])
def test_words_and_backbone_come_together(
    tmp_path: Path, words: str | None, backbone: str | None
) -> None:
    """Before the data set is looked for, which is not there."""
    with pytest.raises(ConfigError, match="without --") as error:
        scan("no data", out=tmp_path / "run", words=words, backbone=backbone)
    assert error.value.expected and "add --" in error.value.remedy
    with pytest.raises(D2CPError, match="no data"):
        scan("no data", out=tmp_path / "run")
