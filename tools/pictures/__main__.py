"""`python -m tools.pictures --run demo-run`: docs/pictures again, from a finished demo.

The photographs are the rendered leaves of `tools.leaves`: they are made and scanned here."""

from __future__ import annotations

import argparse
from pathlib import Path

from d2cp.core.files import write_text
from d2cp.core.run_directory import RunDirectory
from tools.leaves.__main__ import IMAGES, SIDE, write
from tools.pictures.dots import dots_svg
from tools.pictures.extremes import extremes_lines
from tools.pictures.rows import draw_lines
from tools.pictures.screenshots import screenshots
from tools.pictures.swap import swap_lines
from tools.pictures.theme import THEMES, save_small

LEAVES, SCAN = Path("build/leaves"), Path("build/leaves-scan")


def scanned_leaves() -> RunDirectory:
    from d2cp.api import scan

    if not (LEAVES / "metadata.csv").is_file():
        write(LEAVES, IMAGES, 0.9, SIDE, seed=0)
    scan(LEAVES, out=SCAN)
    return RunDirectory.open(SCAN)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("--run", type=Path, default=Path("demo-run"))
    parser.add_argument("--out", type=Path, default=Path("docs/pictures"))
    given = parser.parse_args()
    run, out = RunDirectory.open(given.run), given.out
    out.mkdir(parents=True, exist_ok=True)
    strips = {
        "swap-{}.png": swap_lines(run),
        "leaves-{}.webp": extremes_lines(scanned_leaves(), LEAVES),
    }
    for theme in THEMES:
        for name, lines in strips.items():
            save_small(draw_lines(lines, theme), out / name.format(theme.name))
        write_text(out / f"dots-{theme.name}.svg", dots_svg(run, theme))
    for name, picture in screenshots(run.path / "report.html"):
        save_small(picture, out / name)
    for path in sorted(out.iterdir()):
        print(f"{path} {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
