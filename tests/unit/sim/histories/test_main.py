"""The program over a written history."""

from pathlib import Path
from typing import Any

import pytest

from ottla.sim.histories.__main__ import main


def test_the_exit_code_says_whether_something_was_found(story: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story.stored("a", 0)
    file = tmp_path / "history.jsonl"
    file.write_text("\n".join(story.history.to_lines()))
    assert main([str(file), "--unfinished"]) == 0
    assert main([str(file)]) == 1
    assert "unseen record: 'a' was stored at t-0 offset 0" in capsys.readouterr().out


def test_a_file_that_is_no_history_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.txt"
    file.write_text("hello")
    assert main([str(file)]) == 2
    assert "other.txt is not a history" in capsys.readouterr().err
