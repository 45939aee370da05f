"""What tools/set_up.py shows while it sets up `.venv`."""

import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def set_up() -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "tools" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_a_terminal_a_step_prints_lines_only(set_up: ModuleType) -> None:
    out = io.StringIO()
    output = set_up.Steps(2, out).run("Packages", [sys.executable, "-c", "print('Collecting click')"])
    assert output == ["Collecting click"]
    assert out.getvalue().startswith("[1/2] Packages\n      done in ")
    assert "\r" not in out.getvalue()


def test_failing_command_is_shown_with_its_output(set_up: ModuleType) -> None:
    command = [sys.executable, "-c", "print('no space left'); raise SystemExit(3)"]
    with pytest.raises(set_up.SetUpFailed, match=r"(?s)Packages FAILED after .*exit code 3.*no space left"):
        set_up.Steps(1, io.StringIO()).run("Packages", command)


def test_requirements_are_those_of_pyproject(set_up: ModuleType) -> None:
    core, demo, dev = set_up.requirements()
    assert any(each.startswith("pyspark") for each in demo)
    assert set(demo) < set(dev)
    assert {"setuptools>=77", "click>=8.1,<9"} <= set(core)
    assert {"pyarrow>=18", "pytest>=8.3,<10"} <= set(dev)
