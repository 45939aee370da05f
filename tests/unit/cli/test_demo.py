"""The demo: it does what it says, keeps the log where it is told to, and refuses a folder in use."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli import demo as demo_module
from ottla.cli.demo import Demo


def run_demo(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "ottla.cli.demo", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_whole_demo_in_a_folder_of_its_own(tmp_path: Path) -> None:
    done = run_demo(str(tmp_path / "kept"))
    assert (done.returncode, done.stderr) == (0, "")
    for step in ("1. Write", "2. Compact", "3. Tear", "4. Look"):
        assert step in done.stdout
    (before, after) = (int(size.replace(",", "")) for size in re.findall(r"(?:before|after) .* ([\d,]+)\n", done.stdout))
    assert after < before / 5
    assert re.search(r"cut \d+ bytes off \d{20}\.log", done.stdout)
    assert re.search(r"key: account-\d+  payload: {", done.stdout)
    assert sorted((tmp_path / "kept" / "accounts-0").glob("*.log"))

    again = run_demo(str(tmp_path / "kept"))
    assert again.returncode == 1
    assert "already holds a log" in again.stderr


def test_without_a_folder_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(demo_module, "BATCHES", 10)
    demo_module.demo.main([], standalone_mode=False)
    assert list(tmp_path.iterdir()) == []


def test_a_compaction_that_loses_a_value_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo checks what it claims: here the check is fed a wrong answer."""
    answers = iter([{b"account-1": b"10"}, {b"account-1": b"9"}])
    monkeypatch.setattr(demo_module, "BATCHES", 10)
    monkeypatch.setattr(demo_module, "contents_of", lambda log: demo_module.Contents(1, 1, 1, next(answers)))
    console = demo_module.Console(quiet=True)
    with pytest.raises(demo_module.OttlaError, match="changed the last value"):
        demo_module.asyncio.run(Demo(console, tmp_path).run())
