"""Live queries: what comes out of the queue, and the mode that Spark is asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.live import LiveQuery, is_about_mode, observed, start


class Writer:
    """Spark's writer, which refuses some modes."""

    def __init__(self, refused: tuple[str, ...]) -> None:
        self.refused = refused
        self.mode = ""
        self.take: Any = None

    def outputMode(self, mode: str) -> Writer:
        self.mode = mode
        return self

    def option(self, name: str, value: str) -> Writer:
        return self

    def foreachBatch(self, take: Any) -> Writer:
        self.take = take
        return self

    def start(self) -> Any:
        if self.mode in self.refused:
            raise ValueError(f"{self.mode} output mode not supported")
        if self.take is not None:
            self.take(SimpleNamespace(collect=lambda: [(1,), (2,)]), 0)
            self.take(SimpleNamespace(collect=list), 1)
            self.take(SimpleNamespace(collect=lambda: [(3,)]), 2)
        return SimpleNamespace(isActive=False, exception=lambda: None, stop=lambda: None, recentProgress=[], mode=self.mode)


def frame(*refused: str, is_streaming: bool = True) -> Any:
    return SimpleNamespace(isStreaming=is_streaming, writeStream=Writer(refused))


def test_update_mode_goes_first_and_append_is_next(tmp_path: Path) -> None:
    assert start(frame(), str(tmp_path), lambda writer: writer).mode == "update"
    assert start(frame("update"), str(tmp_path), lambda writer: writer).mode == "append"
    with pytest.raises(ValueError, match="update output mode"):
        start(frame("update", "append"), str(tmp_path), lambda writer: writer)
    assert not is_about_mode(ValueError("something else"))


def test_query_without_a_stream_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match="the query reads none"):
        start(frame(is_streaming=False), str(tmp_path), lambda writer: writer)


def test_batches_without_rows_are_left_out_and_the_limit_cuts_the_last_one() -> None:
    assert list(LiveQuery(frame()).batches()) == [[(1,), (2,)], [(3,)]]
    assert list(LiveQuery(frame()).batches(1)) == [[(1,)]]


def test_query_has_started_when_its_first_trigger_has_asked_for_offsets() -> None:
    live = LiveQuery(frame())
    messages = ["Initializing sources", "Getting offsets from orders", "Waiting for data to arrive"]
    asked: list[str] = []

    class Query:
        isActive, lastProgress = True, None

        @property
        def status(self) -> dict[str, Any]:
            asked.append(messages[len(asked)])
            return {"message": asked[-1], "isDataAvailable": False}

    live._query = Query()
    live.wait_until_started()
    assert asked == messages


def test_checkpoint_is_removed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path / "checkpoint"))
    (tmp_path / "checkpoint").mkdir()
    LiveQuery(frame()).stop()
    assert not (tmp_path / "checkpoint").exists()


def test_counts_of_batches_are_added() -> None:
    progress = [SimpleNamespace(observedMetrics={"x": {"bad": 2}}), SimpleNamespace(observedMetrics={"x": {"bad": 1}})]
    assert observed(SimpleNamespace(recentProgress=progress)) == {"x": 3}
