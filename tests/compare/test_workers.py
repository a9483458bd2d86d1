"""A killed comparison leaves no worker behind that would hold its cells' locks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PARENT = """
import sys
from pathlib import Path
from d2cp.core.parent import run_child
child = "import os, time; from d2cp.core.parent import end_with_parent; end_with_parent(); "
child += f"open({str(sys.argv[1])!r}, 'w').write(str(os.getpid())); time.sleep(300)"
run_child([sys.executable, "-c", child], Path(sys.argv[1] + ".log"))
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"  # a zombie that nobody has waited for yet is dead


def test_workers_end_with_a_killed_parent(tmp_path):
    note = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(note)])
    while not (note.is_file() and note.read_text()):
        assert parent.poll() is None
        time.sleep(0.02)
    worker = int(note.read_text())
    assert alive(worker)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 200  # left alone it would sleep 300 s
    while alive(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(worker)
