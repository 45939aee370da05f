"""Histories as lines of JSON, and the program over them."""

from pathlib import Path
from typing import Any

import pytest

from ottla.ids import TopicPartition
from ottla.sim.histories.__main__ import main
from ottla.sim.histories.history import History

PLACE = TopicPartition("t", 0)


def test_a_history_survives_its_lines(story: Any) -> None:
    one = story.history.transaction("p", "one")
    story.stored("a", 0, one)
    story.history.send("p", PLACE, "refused").failed()
    story.commit(one)
    story.history.assigned("c", [PLACE], "g")
    story.read((0, "a"), group="g", is_committed=True, transaction=one)
    story.history.commits("g", {PLACE: 1}).acknowledged()
    story.history.offsets_found("g", {PLACE: 1}, story.history.now_s())
    lines = story.history.to_lines()
    again = History.from_lines(lines)
    assert again.to_lines() == lines
    assert len({type(event) for event in again.events}) == 6


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
