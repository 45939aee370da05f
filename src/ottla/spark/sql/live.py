"""Live queries: streaming queries of Spark whose rows come to this process, and continuous inserts.

`foreachBatch` runs in a thread that Spark calls back. It collects a micro-batch and puts it into a short queue; the main thread
takes it out and shows it, so that Ctrl-C reaches the thread that can stop the query. Aggregations run in update mode: each
micro-batch has the rows that changed.
"""

from __future__ import annotations

import queue
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.frames import BAD

WAIT_S = 0.2
POLL_S = 0.05
BATCHES_WAITING_MAX = 4


class LiveQuery:
    """A streaming query whose rows are taken out batch by batch."""

    def __init__(self, df: Any) -> None:
        self._queue: queue.Queue[list[Any]] = queue.Queue(BATCHES_WAITING_MAX)
        self._is_stopping = False
        self._checkpoint = tempfile.mkdtemp(prefix="ottla-sql-")
        try:
            self._query = start(df, self._checkpoint, lambda writer: writer.foreachBatch(self._take))
        except BaseException:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            raise

    def wait_until_started(self) -> None:
        """Return when the query has fixed where it begins: what is sent from now on is seen."""
        while self._query.isActive:
            status = self._query.status
            # The sources are asked for their offsets in the first trigger, which ends with or without data.
            if self._query.lastProgress is not None or status["isDataAvailable"] or status["message"].startswith("Waiting"):
                return
            time.sleep(POLL_S)

    def _take(self, df: Any, batch: int) -> None:
        rows = df.collect()
        while rows and not self._is_stopping:
            try:
                self._queue.put(rows, timeout=WAIT_S)
                return
            except queue.Full:
                continue

    def batches(self, limit: int | None = None) -> Iterator[Sequence[Any]]:
        """The rows of each micro-batch that has any, until `limit` rows were given. Raises the query's error."""
        left = limit
        while left is None or left > 0:
            try:
                rows = self._queue.get(timeout=WAIT_S)
            except queue.Empty:
                if self._query.isActive:
                    continue
                if (error := self._query.exception()) is not None:
                    raise error from None
                if self._queue.empty():
                    return
                continue
            rows = rows if left is None else rows[:left]
            left = None if left is None else left - len(rows)
            yield rows

    def bad_records(self) -> dict[str, int]:
        """How many bad records were left out, by the name that they were observed under."""
        return observed(self._query)

    def stop(self) -> None:
        """End the query and remove its checkpoint."""
        self._is_stopping = True
        try:
            self._query.stop()
        finally:
            shutil.rmtree(self._checkpoint, ignore_errors=True)


class ContinuousInsert:
    """A streaming query that writes to a topic until it is stopped. It lives no longer than its process."""

    def __init__(self, df: Any, options: Mapping[str, str], name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._checkpoint = tempfile.mkdtemp(prefix="ottla-sql-")
        try:
            # A sink that is written in Python has no update mode, and Spark would say so only after the start.
            self.query = start(
                df, self._checkpoint, lambda writer: writer.format("ottla").options(**options), modes=("append",)
            )
        except BaseException:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            raise

    @property
    def state(self) -> str:
        """`running`, `stopped` or `failed`."""
        if self.query.isActive:
            return "running"
        return "stopped" if self.query.exception() is None else "failed"

    def rows(self) -> int:
        """How many records it has read so far."""
        return sum(each.numInputRows or 0 for each in self.query.recentProgress)

    def stop(self) -> None:
        """End the query."""
        try:
            self.query.stop()
        finally:
            shutil.rmtree(self._checkpoint, ignore_errors=True)


def start(df: Any, checkpoint: str, configure: Any, modes: Sequence[str] = ("update", "append")) -> Any:
    """Start a streaming query in the first of the modes that Spark has for it."""
    if not df.isStreaming:
        raise SqlError(
            "EMIT CHANGES needs a stream, and the query reads none: leave EMIT CHANGES out, or read a stream or topic"
        )
    first: Exception | None = None
    for mode in modes:
        writer = df.writeStream.outputMode(mode).option("checkpointLocation", checkpoint)
        try:
            return configure(writer).start()
        except Exception as error:
            if not is_about_mode(error):
                raise
            first = first or error
    assert first is not None
    raise first


def is_about_mode(error: Exception) -> bool:
    """Whether Spark refuses the output mode, rather than the query."""
    return "output mode" in str(error).lower()


def observed(query: Any) -> dict[str, int]:
    """The sums of what Spark counted in the batches of a streaming query that it still remembers."""
    found: dict[str, int] = {}
    for progress in query.recentProgress:
        for name, row in (progress.observedMetrics or {}).items():
            found[name] = found.get(name, 0) + int(row[BAD] or 0)
    return found
