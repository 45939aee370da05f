"""What `ottla perf consume` measures: records, bytes and the time of rebalances. Pure: numbers in, lines out."""

from __future__ import annotations

from typing import Any

from ottla.cli.perf.date_format import DateFormat
from ottla.cli.perf.numbers import MB, finite, fixed, ratio

_COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
HEADER = f"start.time, end.time, {_COLUMNS}"
DETAILED_HEADER = f"time, threadId, {_COLUMNS}"
HEADINGS = ("#Records", "#Records/s", "#MB", "#MB/s", "#Rebalance ms", "#Fetch ms", "#Fetched/s", "#Fetched MB/s")


class ReadStatistics:
    """Counts since the start, and since the last line. Times are milliseconds since 1970, as Kafka's tool counts them."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = self.window_start_ms = start_ms
        self._join_start_ms = start_ms
        self.records = self.size_bytes = self.join_ms = 0
        self._window_records = self._window_bytes = self._window_join_ms = 0

    def add(self, records: int, size_bytes: int) -> None:
        """Count what a poll has returned."""
        self.records += records
        self.size_bytes += size_bytes

    def rebalance_began(self, now_ms: int) -> None:
        self._join_start_ms = now_ms

    def rebalance_ended(self, now_ms: int) -> None:
        """Partitions were assigned. The first join counts from the start of the consumer."""
        elapsed_ms = now_ms - self._join_start_ms
        self.join_ms += elapsed_ms
        self._window_join_ms += elapsed_ms

    def take_window(self, now_ms: int, date_format: DateFormat) -> str:
        """The line about the window, which ends."""
        elapsed_ms = now_ms - self.window_start_ms
        fetch_ms = elapsed_ms - self._window_join_ms
        records = self.records - self._window_records
        mb = (self.size_bytes - self._window_bytes) / MB
        numbers = [
            fixed(self.size_bytes / MB, 4),
            fixed(ratio(1000.0 * mb, elapsed_ms), 4),
            str(self.records),
            fixed(ratio(1000.0 * records, elapsed_ms), 4),
            str(self._window_join_ms),
            str(fetch_ms),
            fixed(1000.0 * mb / fetch_ms if fetch_ms > 0 else 0.0, 4),
            fixed(1000.0 * records / fetch_ms if fetch_ms > 0 else 0.0, 4),
        ]
        self.window_start_ms, self._window_join_ms = now_ms, 0
        self._window_records, self._window_bytes = self.records, self.size_bytes
        return ", ".join([date_format.show(now_ms / 1000), "0", *numbers])

    def total_line(self, end_ms: int, date_format: DateFormat) -> str:
        """The line about everything."""
        seconds, fetch_ms, mb = (end_ms - self.start_ms) / 1000, end_ms - self.start_ms - self.join_ms, self.size_bytes / MB
        numbers = [
            fixed(mb, 4),
            fixed(ratio(mb, seconds), 4),
            str(self.records),
            fixed(ratio(self.records, seconds), 4),
            str(self.join_ms),
            str(fetch_ms),
            fixed(ratio(mb, fetch_ms / 1000), 4),
            fixed(ratio(self.records, fetch_ms / 1000), 4),
        ]
        return ", ".join([date_format.show(self.start_ms / 1000), date_format.show(end_ms / 1000), *numbers])

    def row(self, end_ms: int) -> tuple[object, ...]:
        """The cells of a table, under `HEADINGS`."""
        seconds, fetch_ms, mb = (end_ms - self.start_ms) / 1000, end_ms - self.start_ms - self.join_ms, self.size_bytes / MB
        fetched = (f"{ratio(self.records, fetch_ms / 1000):,.0f}", f"{ratio(mb, fetch_ms / 1000):,.1f}")
        per_second = (f"{ratio(self.records, seconds):,.0f}", f"{mb:,.1f}", f"{ratio(mb, seconds):,.1f}")
        return (f"{self.records:,}", *per_second, f"{self.join_ms:,}", f"{fetch_ms:,}", *fetched)

    def as_json(self, end_ms: int) -> dict[str, Any]:
        seconds, fetch_ms = (end_ms - self.start_ms) / 1000, end_ms - self.start_ms - self.join_ms
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "startTimeMs": self.start_ms,
            "endTimeMs": end_ms,
            "recordsPerSec": finite(ratio(self.records, seconds)),
            "mbPerSec": finite(ratio(self.size_bytes / MB, seconds)),
            "rebalanceTimeMs": self.join_ms,
            "fetchTimeMs": fetch_ms,
            "fetchRecordsPerSec": finite(ratio(self.records, fetch_ms / 1000)),
            "fetchMbPerSec": finite(ratio(self.size_bytes / MB, fetch_ms / 1000)),
        }
