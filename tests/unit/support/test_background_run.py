"""In a test run started in the background, where SIGINT is ignored, tests can still interrupt their child processes."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

IGNORING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
"""

INTERRUPTS = """
import os, signal, subprocess, sys
def test_child():
    child = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    assert subprocess.run([sys.executable, "-c", child], stderr=subprocess.DEVNULL).returncode == -signal.SIGINT
def test_run_goes_on():
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_children_are_interruptible_when_the_run_ignores_interrupts(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_it.py").write_text(INTERRUPTS)
    command = [sys.executable, "-c", IGNORING, "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={tmp_path}"]
    done = subprocess.run(
        [*command, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
