"""The same readers, led by coverage: inputs that reach new lines of ours are kept and changed on.

    pip install atheris        # Linux; not part of the development tools
    python benchmarks/fuzz_coverage.py --reader images --runs 20000

Starts from the good files of `fuzz_readers`. Ends with libFuzzer's figures and exit code 0, or at
the first exception that is not one of the package's own, whose input is written to the folder.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("atheris is not installed: pip install atheris")

READERS = (
    *("images", "metadata", "settings", "corrections", "predictions", "manifest", "tensors"),
    "archives",
)
# Whose lines are counted: what reads the files of these readers.
INSTRUMENTED = [
    *("d2cp.data", "d2cp.config", "d2cp.core", "d2cp.evaluate.prediction_file"),
    *("d2cp.pipeline.corrections", "d2cp.pipeline.frozen_features"),
]
SLOW, MEMORY = 2, 4096  # seconds an input may take, megabytes the process


def byte_reader(name: str, folder: Path) -> Callable[[bytes], None]:
    """Reads bytes as this kind of file."""
    import fuzz_readers as readers
    from d2cp.core.run_directory import RunDirectory
    from d2cp.data import load_table
    from fuzz_archives import read_archive_bytes

    def stored(path: Path, read: Callable[[], object]) -> Callable[[bytes], None]:
        def call(data: bytes) -> None:
            path.write_bytes(data)
            read()

        return call

    if name == "images":

        def square(data: bytes) -> None:
            readers.to_square(readers.decode(data), 16)

        return square
    if name == "metadata":
        return stored(folder / "data/metadata.csv", lambda: load_table(folder / "data"))
    if name == "settings":
        path = folder / "settings.toml"
        return stored(path, lambda: readers.load_config("demo", file=path))
    if name == "corrections":
        path = folder / "corrections.json"
        return stored(path, lambda: readers.load_corrections(path))
    if name == "predictions":
        path = folder / "predictions.csv"
        return stored(path, lambda: readers.read_prediction_file_at(path, None))
    if name == "manifest":
        path = folder / "run/data/manifest.json"
        run = RunDirectory(folder / "run")
        return stored(path, lambda: run.damage("data"))
    if name == "archives":
        return lambda data: read_archive_bytes(folder, data)
    path = folder / "features/features.safetensors"
    return stored(path, lambda: readers.load_features(path.parent))


def good_files(name: str, folder: Path) -> list[Path]:
    places = {
        "settings": folder / "good.toml",
        "manifest": folder / "good/data/manifest.json",
        "tensors": folder / "features/features.safetensors",
    }
    if name == "images":
        return sorted(p for p in folder.iterdir() if p.is_file())
    if name == "archives":
        return sorted((folder / "good").iterdir())
    return [places[name]] if name in places else sorted(folder.glob("good.*"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--reader", choices=READERS, required=True)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=INSTRUMENTED):
        import fuzz_readers as readers
        from d2cp.data.images import UnreadableError
        from d2cp.errors import D2CPError
    folder = Path(tempfile.mkdtemp(prefix="d2cp-coverage-"))
    readers.READERS[given.reader][0](folder, prepared_run(folder, given.reader))
    seeds = folder / "seeds"
    seeds.mkdir()
    for path in good_files(given.reader, folder):
        (seeds / path.name).write_bytes(path.read_bytes())
    read = byte_reader(given.reader, folder)

    def once(data: bytes) -> None:
        try:
            read(data)
        except (D2CPError, UnreadableError):
            return

    options = [f"-runs={given.runs}", f"-seed={given.seed}", f"-timeout={SLOW}"]
    options += [f"-rss_limit_mb={MEMORY}", "-max_len=65536", f"-artifact_prefix={folder}/"]
    print(f"{given.reader}: inputs that fail go to {folder}", flush=True)
    atheris.Setup([sys.argv[0], *options, str(seeds)], once)
    atheris.Fuzz()


def prepared_run(folder: Path, name: str) -> Path:
    """The small finished run that manifests and tensors are taken from."""
    if name not in ("manifest", "tensors"):
        return folder
    from fuzz import small_run

    (folder / "source").mkdir()
    return small_run(folder / "source")


if __name__ == "__main__":
    main()
