"""Live queries: what comes out of the queue, and the mode that Spark is asked for."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.spark.sql import interrupts
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.interrupts import Interrupted, cancel_group, in_job_group, run_interruptibly
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


def test_result_and_error_come_back() -> None:
    assert run_interruptibly(lambda: 7, lambda: None) == 7
    with pytest.raises(ZeroDivisionError):
        run_interruptibly(lambda: 1 // 0, lambda: None)


def test_interrupt_cancels_the_work_and_waits_for_its_end() -> None:
    cancelled, ended = threading.Event(), threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def work() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        assert cancelled.wait(30)
        ended.set()

    with pytest.raises(Interrupted) as raised:
        run_interruptibly(work, cancelled.set)
    assert ended.is_set()
    assert (raised.value.is_done, raised.value.is_running) == (True, False)


def test_work_that_cannot_be_cancelled_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "CANCEL_LIMIT_S", 0.05)
    main, end = threading.main_thread().ident, threading.Event()
    assert main is not None

    def work() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        end.wait(30)

    with pytest.raises(Interrupted) as raised:
        run_interruptibly(work, lambda: None)
    end.set()
    assert (raised.value.is_done, raised.value.is_running) == (False, True)


def test_statement_that_is_cancelled_before_its_first_job_runs_none(spark: Any) -> None:
    """Spark's cancelJobGroup ends running jobs alone: a Ctrl-C while an INSERT was planned let it write all its rows."""
    main, ran = threading.main_thread().ident, []
    assert main is not None
    cancelled = threading.Event()

    def work() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        assert cancelled.wait(30)
        ran.append(spark.range(10, numPartitions=2).selectExpr("sum(id)").collect())

    def cancel() -> None:
        cancel_group(spark, "ottla-sql-early")
        cancelled.set()

    with pytest.raises(Interrupted) as raised:
        run_interruptibly(in_job_group(spark, "ottla-sql-early", work), cancel)
    assert (ran, raised.value.is_done) == ([], False)
    assert spark.range(3).count() == 3


class Context:
    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def setJobGroup(self, group: str, text: str, interruptOnCancel: bool) -> None:
        self.calls.append(("set", group))

    @property
    def _jsc(self) -> Any:
        return SimpleNamespace(sc=lambda: self)

    def cancelJobGroupAndFutureJobs(self, group: str) -> None:
        self.calls.append(("cancel", group))


class Session:
    def __init__(self) -> None:
        self._sc = Context()


class Remote:
    """A session of Spark Connect."""

    interrupted = False

    def interruptAll(self) -> None:
        self.interrupted = True


def test_jobs_are_cancelled_by_their_group_or_all_at_once() -> None:
    session, remote = Session(), Remote()
    assert in_job_group(session, "g", lambda: 1)() == in_job_group(remote, "g", lambda: 1)() == 1
    cancel_group(session, "g")
    cancel_group(remote, "g")
    assert session._sc.calls == [("set", "g"), ("cancel", "g")]
    assert remote.interrupted
