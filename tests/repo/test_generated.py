"""Generated files that are checked in are up to date."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "generator",
    [
        "generate_api_table.py",
        "generate_client_keywords.py",
        "generate_client_settings.py",
        "generate_dashboards.py",
        "generate_file_map.py",
    ],
)
def test_generated_file_is_up_to_date(generator: str) -> None:
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / generator, "--check"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ran.returncode == 0, ran.stderr
