"""What tools/set_up.py shows while it sets up `.venv`."""

import importlib.util
import io
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def set_up() -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_up", ROOT / "tools" / "set_up.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("Collecting google-re2<2,>=1.1.20240702", "looking for google-re2"),
        ("Downloading https://example.org/pyarrow-26.0-cp311-linux.whl (45.2 MB)", "fetching pyarrow (45.2 MB)"),
        ("Using cached cramjam-2.14.0-cp311.whl (1.9 MB)", "fetching cramjam (1.9 MB)"),
        ("Installing collected packages: click, rich", "installing 2 packages"),
        ("Requirement already satisfied: click<9 in x", None),
        ("", None),
    ],
)
def test_lines_of_pip_become_a_short_status(set_up: ModuleType, line: str, status: str | None) -> None:
    assert set_up.pip_status(line) == status


def test_lines_of_setup_py_become_a_short_status(set_up: ModuleType) -> None:
    assert set_up.kernel_status("[3/9] Cythonizing src/ottla/log/fast_path/kernel_append.py") == "translated to C: 3/9"
    assert set_up.kernel_status("kernels compiled: 4/10") == "kernels compiled: 4/10"
    assert set_up.kernel_status("performance hint: something") is None


def test_without_a_terminal_a_step_prints_lines_only(set_up: ModuleType) -> None:
    out = io.StringIO()
    output = set_up.Steps(2, out).run("Packages", [sys.executable, "-c", "print('Collecting click')"])
    assert output == ["Collecting click"]
    assert out.getvalue().startswith("[1/2] Packages\n      done in ")
    assert "\r" not in out.getvalue()


def test_without_a_terminal_a_slow_step_says_where_it_is(set_up: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_up, "SAY_EVERY_S", 0)
    out = io.StringIO()
    set_up.Steps(1, out).run("Packages", [sys.executable, "-c", "print('Collecting click')"])
    assert " s  looking for click\n" in out.getvalue()


def test_on_a_terminal_a_step_rewrites_its_line(set_up: ModuleType) -> None:
    out = Terminal()
    set_up.Steps(1, out).run("Packages", [sys.executable, "-c", "print('Collecting click')"])
    *_, shown, last = out.getvalue().split("\r")
    assert "looking for click" in shown
    assert last.startswith("\x1b[K[1/1] Packages … ")
    assert out.getvalue().count("\n") == 1


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
