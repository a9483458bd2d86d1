"""The command line. Nothing here imports torch until a command needs it."""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Console entry: faults a user can mend are shown in plain words, never as a traceback."""
    from d2cp.cli.app import app
    from d2cp.core.memory import keep
    from d2cp.core.parent import end_with_parent
    from d2cp.core.threads import wait_passively
    from d2cp.errors import D2CPError

    end_with_parent()
    wait_passively()
    keep()
    try:
        app(args=list(arguments) if arguments is not None else None)
    except D2CPError as error:
        print(f"d2cp: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except OSError as error:  # of a path that was typed: wherever it is first looked at
        if error.errno != errno.ENAMETOOLONG:
            raise
        name = str(error.filename)[:80]
        print(f"d2cp: {name}…: {error.strerror}\n  to do:    use a shorter path", file=sys.stderr)
        raise SystemExit(2) from None
