"""`ProgressListener`: a StreamingQueryListener that commits what queries have read to a consumer group, and measures them.

    with ProgressListener("orders-pipeline", {"kafka.bootstrap.servers": "localhost:9092"}).attach(spark) as listener:
        query = orders.writeStream. … .start()
        query.awaitTermination()

Spark's checkpoint stays the truth: the group only shows how far the query is. Spark calls the listener after a batch is
committed, one call at a time, in a thread of its own; no call waits for the network. An attached listener keeps the interpreter
from ending under Spark Connect, so `close` is also called before the interpreter's threads are joined.

Coordinators forget offsets of a group without members that were not committed again for offsets.retention.minutes (a week): all
offsets are committed again once a day.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from ottla import Admin
from ottla.spark.errors import SparkOptionError
from ottla.spark.options import KAFKA_PREFIX
from ottla.spark.progress.measures import Measures, Offsets, measures_of, merge_smallest, metrics_dict, metrics_text

if TYPE_CHECKING:
    from rich.console import Console


def line_of(measures: Measures, rows_total: int) -> str:
    """One line: `orders · batch 12 · 48,210 rows · 4,210 rows/s · 0.41 s · lag 0`; with a lag, also that of partitions."""
    parts = [
        measures.name,
        f"batch {measures.batch_id}",
        f"{rows_total:,} rows",
        f"{measures.rows_per_second:,.0f} rows/s",
        f"{measures.batch_ms / 1000:.2f} s",
    ]
    if measures.sources:
        parts.append(f"lag {measures.lag:,}")
    if measures.lag and (numbers := measures.behind_latest) is not None:
        parts[-1] += f" (per partition {numbers.min:,} to {numbers.max:,}, average {numbers.avg:,.1f})"
    return " · ".join(parts)


class ProgressLine:
    """Lines that are rewritten in place. Where the console is no terminal, nothing is shown."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self._console = console or Console(stderr=True)
        self._lines: dict[str, str] = {}
        self._live: Any = None

    def show(self, measures: Measures, rows_total: int) -> None:
        """Show a query's newest measures."""
        if not self._console.is_terminal:
            return
        from rich.live import Live
        from rich.text import Text

        self._lines[measures.query_id] = line_of(measures, rows_total)
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(Text("\n".join(self._lines.values()), overflow="ellipsis", no_wrap=True), refresh=True)

    def close(self) -> None:
        """Leave the last lines on the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None


logger = logging.getLogger("ottla.spark.progress")

CLOSE_TIMEOUT_S = 20.0
POLL_S = 0.05


class ProgressListener(StreamingQueryListener):
    """Commits offsets, keeps metrics, shows a live line; each if asked to."""

    def __init__(
        self,
        group: str | None = None,
        options: Mapping[str, str] | None = None,
        *,
        queries: Iterable[str] | None = None,
        line: bool | Any = False,
    ) -> None:
        """`group`: where to commit, with `options` as for the source (`kafka.bootstrap.servers`, …). `queries`: names of the
        queries to follow; all of the session without. `line`: True for a live line on standard error, or a rich Console."""
        self._committer = None if group is None else GroupCommitter(group, _client(options))
        self._queries = None if queries is None else frozenset(queries)
        self._line = None if line is False else ProgressLine(None if line is True else line)
        self._lock = threading.Condition()
        self._newest: dict[str, Measures] = {}
        self._rows: dict[str, int] = {}
        self._running: dict[str, str] = {}
        self._session: Any = None

    def attach(self, spark: Any) -> ProgressListener:
        """Follow the queries of a session, from those that start next on."""
        spark.streams.addListener(self)
        self._session = spark
        _before_threads_are_joined(self.close)
        return self

    def __enter__(self) -> ProgressListener:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Wait for the reports of queries that have ended, commit them, and detach. Safe to call twice."""
        session, self._session = self._session, None
        if session is not None:
            try:
                self._await_ended(session, timeout_s)
                session.streams.removeListener(self)
            except Exception as error:  # the session may be stopped already, and what was reported is to be committed
                logger.debug("the listener was not removed: %s", error)
        if self._committer is not None:
            self._committer.close(timeout_s)
            self._committer = None
        if self._line is not None:
            self._line.close()

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> bool:
        """Wait until what was reported so far is committed; False if it is not in time."""
        return self._committer is None or self._committer.flush(timeout_s)

    def metrics(self) -> dict[str, Any]:
        """The newest measures of each query, by its name."""
        with self._lock:
            return metrics_dict(self._newest.values(), self._rows, self._failures())

    def metrics_text(self) -> bytes:
        """The same in Prometheus's text format."""
        with self._lock:
            return metrics_text(self._newest.values(), self._rows, self._failures())

    def onQueryStarted(self, event: Any) -> None:
        """A query has started, or was restarted."""
        if self._is_wanted(event.name):
            with self._lock:
                self._running[str(event.runId)] = str(event.id)

    def onQueryProgress(self, event: Any) -> None:
        """A batch has ended."""
        if self._is_wanted(event.progress.name):
            self.take(measures_of(event.progress))

    def onQueryIdle(self, event: Any) -> None:
        """Nothing new was there to read."""

    def onQueryTerminated(self, event: Any) -> None:
        """A query has ended; nothing more will be reported of this run."""
        with self._lock:
            query_id = self._running.pop(str(event.runId), None)
            self._lock.notify_all()
        if self._committer is not None and query_id is not None:
            self._committer.end(query_id)

    def take(self, measures: Measures) -> None:
        """Take one report."""
        with self._lock:
            self._newest[measures.query_id] = measures
            total = self._rows[measures.query_id] = self._rows.get(measures.query_id, 0) + measures.rows
        if self._committer is not None and measures.sources:
            self._committer.offer(measures.query_id, measures.offsets)
        if self._line is not None:
            self._line.show(measures, total)
        logger.info("%s", line_of(measures, total))

    def _is_wanted(self, name: str | None) -> bool:
        return self._queries is None or name in self._queries

    def _failures(self) -> int:
        return 0 if self._committer is None else self._committer.failures

    def _await_ended(self, session: Any, timeout_s: float) -> None:
        """Reports come after the query itself has ended: wait for those of runs that are no longer active."""
        deadline = time.monotonic() + timeout_s
        active = {str(query.runId) for query in session.streams.active}
        with self._lock:
            while self._running.keys() - active and time.monotonic() < deadline:
                self._lock.wait(POLL_S)


def _client(options: Mapping[str, str] | None) -> dict[str, str]:
    found = {}
    for name, value in (options or {}).items():
        found[name[len(KAFKA_PREFIX) :] if name.startswith(KAFKA_PREFIX) else name] = value
    if not found.get("bootstrap.servers"):
        raise SparkOptionError("kafka.bootstrap.servers is missing: a listener with a group needs the address of a broker")
    return found


def _before_threads_are_joined(call: Any) -> None:
    # atexit runs after threading has joined Connect's listener thread, which ends only when the listener is removed.
    register = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(call)


PAUSE_S_MIN = 0.5
PAUSE_S_MAX = 30.0
CALL_TIMEOUT_S = 20.0
RENEW_S = 86_400.0
METADATA = "committed by a Spark query"


class GroupCommitter:
    """Commits what queries have read. `failures` counts attempts that failed."""

    def __init__(self, group: str, client: Mapping[str, str], commit: Callable[[Offsets], None] | None = None) -> None:
        self._group = group
        self._client = dict(client)
        self._commit = commit or self._commit_with_admin
        self._admin: Admin | None = None
        self._changed = threading.Condition()
        self._by_query: dict[str, Offsets] = {}
        self._ended: set[str] = set()
        """Queries that will not report again: forgotten once their last offsets are committed."""
        self._committed: Offsets = {}
        self._is_closing = False
        self._last_error: str | None = None
        self.failures = 0
        self._thread = threading.Thread(target=self._run, name=f"ottla-commits-{group}", daemon=True)
        self._thread.start()

    def offer(self, query_id: str, offsets: Offsets) -> None:
        """Take the newest offsets of a query; they replace its earlier ones. Does not wait."""
        with self._changed:
            self._by_query[query_id] = dict(offsets)
            self._ended.discard(query_id)
            self._changed.notify_all()

    def end(self, query_id: str) -> None:
        """Forget a query that has ended, after its last offsets: it must not hold back others that read the same topics."""
        with self._changed:
            self._ended.add(query_id)
            if not self._due():
                self._forget_ended()
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything offered is committed; False if it is not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._due(), timeout_s)

    def close(self, timeout_s: float = CALL_TIMEOUT_S) -> bool:
        """Commit what is left and stop; False, and a log line, if that did not succeed in time."""
        is_done = self.flush(timeout_s)
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join(timeout_s)
        if not is_done:
            logger.error("the offsets of group %s are behind the query's: %s", self._group, self._last_error or "no answer yet")
        return is_done

    def _due(self) -> Offsets:
        wanted: Offsets = {}
        for offsets in self._by_query.values():
            merge_smallest(wanted, offsets)
        return {each: offset for each, offset in wanted.items() if self._committed.get(each) != offset}

    def _forget_ended(self) -> None:
        for query_id in self._ended:
            self._by_query.pop(query_id, None)
        self._ended.clear()

    def _run(self) -> None:
        pause_s, renewal_s = 0.0, time.monotonic() + RENEW_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closing or bool(self._due()), max(0.0, renewal_s - time.monotonic()))
                if time.monotonic() >= renewal_s:
                    self._committed.clear()
                    renewal_s = time.monotonic() + RENEW_S
                if pause_s and not self._is_closing:
                    self._changed.wait_for(lambda: self._is_closing, pause_s)
                due = self._due()
                if self._is_closing:
                    break
            if not due:
                continue
            try:
                self._commit(due)
            except Exception as error:  # whatever it is, the query must go on
                pause_s = min(PAUSE_S_MAX, pause_s * 2 or PAUSE_S_MIN)
                self._failed(error, pause_s)
                continue
            pause_s = 0.0
            self._last_error = None
            with self._changed:
                self._committed.update(due)
                if not self._due():
                    self._forget_ended()
                self._changed.notify_all()
        if self._admin is not None:
            self._admin.close()

    def _failed(self, error: Exception, pause_s: float) -> None:
        self.failures += 1
        if str(error) != self._last_error:
            self._last_error = str(error)
            logger.warning("offsets were not committed to group %s, next try in %.1f s: %s", self._group, pause_s, error)

    def _commit_with_admin(self, offsets: Offsets) -> None:
        from ottla import OffsetAndMetadata

        if self._admin is None:
            self._admin = Admin(config=self._client)
        wanted: dict[Any, Any] = {each: OffsetAndMetadata(offset, METADATA) for each, offset in offsets.items()}
        results = self._admin.with_timeout(CALL_TIMEOUT_S).alter_consumer_group_offsets(self._group, wanted)
        results.raise_first()
