"""Runs tests as a user of `ottla.testing` writes them, in a separate pytest."""

import os
import subprocess
import sys
from pathlib import Path


def run_pytest(
    folder: Path, code: str, *options: str, ini: str = "", finds_plugins: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run the tests in `code`, with `ini` in their pytest.ini.

    Unless it `finds_plugins` of its own, pytest loads only those that are named: a start takes half the time.
    """
    (folder / "test_user.py").write_text(code)
    (folder / "pytest.ini").write_text(f"[pytest]\naddopts = --strict-markers -p no:cacheprovider\n{ini}")
    named = [] if finds_plugins else ["-p", "ottla.testing.pytest_plugin"]
    environment = os.environ if finds_plugins else {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", *named, *options, "test_user.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment)
