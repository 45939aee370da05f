"""Runs work of Spark in a thread of its own, so that Ctrl-C reaches the main thread at once and can cancel it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")
CANCEL_LIMIT_S = 10.0
"""How long cancelled work may take to end. Spark's jobs end at once; planning goes on, and its jobs end when they start."""


class Interrupted(Exception):
    """Ctrl-C has ended the statement."""

    def __init__(self, *, is_done: bool = False, is_running: bool = False) -> None:
        super().__init__()
        self.is_done = is_done
        """Whether the work was complete before it could be cancelled."""
        self.is_running = is_running
        """Whether it goes on: it could not be cancelled in time."""


def run_interruptibly(work: Callable[[], T], cancel: Callable[[], object]) -> T:
    """The result of `work`, or its error; `Interrupted` after Ctrl-C, when `cancel` was called."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="ottla-sql", daemon=True).start()
        return future.result()
    except KeyboardInterrupt:
        cancel()
        try:
            is_done = future.exception(CANCEL_LIMIT_S) is None
        except TimeoutError:
            raise Interrupted(is_running=True) from None  # the thread ends with its work
        raise Interrupted(is_done=is_done) from None


def in_job_group(spark: Any, group: str, work: Callable[[], T]) -> Callable[[], T]:
    """`work` with a name for its jobs, by which `cancel_group` ends them. Spark Connect has no such names."""
    context = getattr(spark, "_sc", None)

    def run() -> T:
        if context is not None:
            activate(spark)
            context.setJobGroup(group, "ottla sql", interruptOnCancel=True)
        return work()

    return run


def activate(spark: Any) -> None:
    """Make the session that of the JVM's thread: without one, a writer finds no data source that is written in Python."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is not None:
        type(spark)._get_j_spark_session_class(jvm).setActiveSession(spark._jsparkSession)


def cancel_group(spark: Any, group: str) -> None:
    """End the jobs of a group, and those that it has not started yet: a statement that is being planned has none."""
    context = getattr(spark, "_sc", None)
    if context is not None:
        context._jsc.sc().cancelJobGroupAndFutureJobs(group)
    else:
        spark.interruptAll()
