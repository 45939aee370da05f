"""Ctrl-C while Spark works."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.spark.sql import interrupts
from ottla.spark.sql.interrupts import Interrupted, cancel_group, in_job_group, run_interruptibly


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
