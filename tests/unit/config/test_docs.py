"""docs/configuration.md is what the tables say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_document_is_fresh() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "tools/generate_config_docs.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout
