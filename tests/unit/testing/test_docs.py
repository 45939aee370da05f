"""The examples of docs/testing.md: those that are tests are run by pytest, the others as scripts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example(number: int, tmp_path: Path) -> None:
    example = EXAMPLES[number]
    path = tmp_path / "test_example.py"
    path.write_text(example, encoding="utf-8")
    is_test = "def test_" in example
    command = ["-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(path)] if is_test else [str(path)]
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_both_kinds() -> None:
    assert {"def test_" in example for example in EXAMPLES} == {True, False}
