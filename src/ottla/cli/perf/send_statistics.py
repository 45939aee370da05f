"""What `ottla perf produce` measures: records, bytes and latencies, in all and since the last line. Pure.

A latency is that of many records at once: those of one batch that were sent together. Percentiles are exact, from a histogram
of milliseconds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ottla.cli.perf.numbers import MB, finite, fixed, percentile, ratio

SHARES = (0.5, 0.95, 0.99, 0.999)


class Window:
    """Counts since a time."""

    def __init__(self, start_s: float) -> None:
        self.start_s = start_s
        self.records = 0
        self.size_bytes = 0
        self.latency_ms_total = 0
        self.latency_ms_max = 0

    def add(self, records: int, size_bytes: int, latency_ms: int) -> None:
        self.records += records
        self.size_bytes += size_bytes
        self.latency_ms_total += latency_ms * records
        self.latency_ms_max = max(self.latency_ms_max, latency_ms)

    def rates(self, now_s: float) -> tuple[float, float]:
        """(records, megabytes) per second, by whole milliseconds as Kafka's tool."""
        elapsed_ms = int((now_s - self.start_s) * 1000)
        return ratio(1000.0 * self.records, elapsed_ms), ratio(1000.0 * self.size_bytes, elapsed_ms) / MB

    @property
    def latency_ms_average(self) -> float:
        return ratio(self.latency_ms_total, self.records)


class SendStatistics:
    """The statistics of one run, or of its steady state."""

    def __init__(self, start_s: float, is_steady: bool = False) -> None:
        self.is_steady = is_steady
        self.total = Window(start_s)
        self.window = Window(start_s)
        self.histogram: Counter[int] = Counter()
        """How many records had which latency, in milliseconds."""

    def add(self, records: int, size_bytes: int, latency_ms: int) -> None:
        """Count records that were stored `latency_ms` after they were sent."""
        self.total.add(records, size_bytes, latency_ms)
        self.window.add(records, size_bytes, latency_ms)
        self.histogram[latency_ms] += records

    def take_window(self, now_s: float) -> list[str]:
        """The lines about the window, which ends."""
        window, self.window = self.window, Window(now_s)
        records_s, mb_s = window.rates(now_s)
        is_first = self.is_steady and window.records == self.total.records
        line = (
            f"{window.records} records sent, {fixed(records_s, 1)} records/sec ({fixed(mb_s, 2)} MB/sec), "
            f"{fixed(window.latency_ms_average, 1)} ms avg latency, {fixed(window.latency_ms_max, 1)} ms max latency."
        )
        return ["In steady state.", line] if is_first else [line]

    def total_line(self, now_s: float) -> str:
        """The line about everything."""
        total = self.total
        records_s, mb_s = total.rates(now_s)
        p50, p95, p99, p999 = self.percentiles()
        return (
            f"{total.records}{' steady state' if self.is_steady else ''} records sent, {fixed(records_s, 6)} records/sec "
            f"({fixed(mb_s, 2)} MB/sec), {fixed(total.latency_ms_average, 2)} ms avg latency, "
            f"{fixed(total.latency_ms_max, 2)} ms max latency, {p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
        )

    def percentiles(self) -> list[int]:
        return [percentile(self.histogram, share) for share in SHARES]

    def row(self, now_s: float) -> tuple[object, ...]:
        """The cells of a table, under `HEADINGS`."""
        records_s, mb_s = self.total.rates(now_s)
        latencies = (fixed(self.total.latency_ms_average, 1), self.total.latency_ms_max, *self.percentiles())
        name = "steady state" if self.is_steady else "all"
        return (name, f"{self.total.records:,}", f"{records_s:,.0f}", f"{mb_s:,.1f}", *latencies)

    def as_json(self, now_s: float) -> dict[str, Any]:
        records_s, mb_s = self.total.rates(now_s)
        p50, p95, p99, p999 = self.percentiles()
        average = finite(self.total.latency_ms_average)
        latency = {"avg": average, "max": self.total.latency_ms_max, "p50": p50, "p95": p95, "p99": p99, "p999": p999}
        return {
            "records": self.total.records,
            "bytes": self.total.size_bytes,
            "seconds": finite(now_s - self.total.start_s),
            "recordsPerSec": finite(records_s),
            "mbPerSec": finite(mb_s),
            "latencyMs": latency,
        }


HEADINGS = ("Records", "#Count", "#Records/s", "#MB/s", "#Avg ms", "#Max", "#p50", "#p95", "#p99", "#p99.9")
