"""tools/run_tests.py: which tests each part has, and which failures of a run may be run again."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tools" / "run_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_test_is_in_one_part(tool: ModuleType) -> None:
    assert "tests/spark" in tool.command("spark")
    assert "--ignore=tests/spark" in tool.command("rest")
    assert len({each for part in tool.CACHES for each in tool.command(part) if each.startswith("cache_dir=")}) == 2


@pytest.mark.parametrize(
    ("failed", "said"), [([], "something before the tests did"), ([f"test_{number}" for number in range(4)], "too many")]
)
def test_no_failure_or_too_many_are_not_run_again(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: list[str], said: str
) -> None:
    cache = tmp_path / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    if failed:
        (cache / "lastfailed").write_text(json.dumps(dict.fromkeys(failed, True)), encoding="utf-8")
    monkeypatch.setattr(tool, "failed_tests", lambda part, find=tool.failed_tests: find(part, tmp_path))
    with pytest.raises(SystemExit, match=said):
        tool.run_failed(3)


def test_failures_of_both_parts_are_run_again(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "failed_tests", lambda part: [f"tests/{part}.py::test_a"])
    ran: list[list[str]] = []

    class Done:
        returncode = 0

    def run(command: list[str], **_: object) -> Done:
        ran.append(command)
        return Done()

    monkeypatch.setattr(tool.subprocess, "run", run)
    assert tool.run_failed(3) == 0
    assert ["--last-failed" in each for each in ran] == [True, True]


def test_lint_that_fails_ends_the_run(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "are_compiled", lambda: False)
    monkeypatch.setattr(tool, "command", lambda part: [sys.executable, "-c", "import time; time.sleep(600)"])
    assert tool.lint_and_compile("exit 3") == 3
    monkeypatch.setattr(tool, "run_all", None)
    monkeypatch.setattr(tool.sys, "argv", ["run_tests.py", "--lint", "exit 3"])
    with pytest.raises(SystemExit, match="3"):
        tool.main()
