"""Ctrl-C while Spark works."""

from __future__ import annotations

import signal
import threading

import pytest

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

    with pytest.raises(Interrupted):
        run_interruptibly(work, cancelled.set)
    assert ended.is_set()


class Context:
    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def setJobGroup(self, group: str, text: str, interruptOnCancel: bool) -> None:
        self.calls.append(("set", group))

    def cancelJobGroup(self, group: str) -> None:
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
