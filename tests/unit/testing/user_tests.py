"""Runs tests as a user of `ottla.testing` writes them, in a separate pytest."""

import subprocess
import sys
from pathlib import Path


def run_pytest(folder: Path, code: str, *options: str, ini: str = "") -> subprocess.CompletedProcess[str]:
    """Run the tests in `code`, with `ini` in their pytest.ini."""
    (folder / "test_user.py").write_text(code)
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers -p no:cacheprovider\n{ini}")
    command = [sys.executable, "-m", "pytest", "-q", *options, "test_user.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
