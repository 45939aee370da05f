"""Pyright's view of the examples in `tests/types`. mypy checks the same files in `make lint`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_pyright_infers_the_types_and_refuses_the_mistakes() -> None:
    found = shutil.which("basedpyright", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip("basedpyright is not installed: pip install -e '.[dev]'")
    ran = subprocess.run(
        [found, "--pythonpath", sys.executable], capture_output=True, text=True, cwd=ROOT, check=False, timeout=300
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0 errors" in ran.stdout
