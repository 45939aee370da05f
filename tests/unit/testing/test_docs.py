"""The examples of docs/testing.md: those that are tests are run by pytest, the others as scripts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def run(folder: Path, *command: str) -> None:
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_examples_that_are_tests(tmp_path: Path) -> None:
    """In one run, which starts once."""
    tests = [number for number, example in enumerate(EXAMPLES) if "def test_" in example]
    assert 0 < len(tests) < len(EXAMPLES)
    for number in tests:
        (tmp_path / f"test_example_{number}.py").write_text(EXAMPLES[number], encoding="utf-8")
    run(tmp_path, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", str(tmp_path))


@pytest.mark.parametrize("number", [number for number, example in enumerate(EXAMPLES) if "def test_" not in example])
def test_an_example_that_is_a_script(number: int, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(EXAMPLES[number], encoding="utf-8")
    run(tmp_path, str(path))
