"""The loop of `ottla perf consume`: polls a consumer, and counts records and bytes.

Fetched batches are taken as columns, without an object per record. Only the last records are taken one by one, so that not many
more are read than were asked for.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from ottla.cli.perf.date_format import DateFormat
from ottla.cli.perf.read_statistics import ReadStatistics
from ottla.client.consumer.sync import Consumer

POLL_S = 0.1
TAIL_RECORDS = 20_000
"""How many of the last records are taken one by one; more, if a poll returns more."""

BytesConsumer = Consumer[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What to read, and when to stop."""

    topics: list[str] | re.Pattern[str]
    records: int
    timeout_ms: int = 10_000
    """Stop when no record has come for so long."""
    interval_ms: int = 5000
    is_detailed: bool = False


class Reading:
    """One run. `report` gets the line of each interval, `progress` (records, bytes, now) after each poll."""

    def __init__(
        self,
        consumer: BytesConsumer,
        plan: ReadPlan,
        date_format: DateFormat,
        report: Callable[[str], object],
        progress: Callable[[int, int, float], object],
    ) -> None:
        self._consumer = consumer
        self.plan = plan
        self._date_format = date_format
        self._report = report
        self._progress = progress
        self._poll_records_max = TAIL_RECORDS // 2
        self.statistics = ReadStatistics(now_ms())

    def run(self) -> bool:
        """Read until enough has come; returns False if nothing more came in time."""
        plan, statistics = self.plan, self.statistics
        self._consumer.subscribe(
            plan.topics,
            on_assigned=lambda _: statistics.rebalance_ended(now_ms()),
            on_revoked=lambda _: statistics.rebalance_began(now_ms()),
        )
        last_ms = statistics.window_start_ms = now_ms()
        while statistics.records < plan.records:
            found = self._poll()
            current_ms = now_ms()
            if found:
                last_ms = current_ms
                if current_ms - statistics.window_start_ms >= plan.interval_ms:
                    self._report(statistics.take_window(current_ms, self._date_format))
                self._progress(statistics.records, statistics.size_bytes, time.monotonic())
            elif current_ms - last_ms > plan.timeout_ms:
                return False
        return True

    def _poll(self) -> int:
        """Take and count what is there; returns how many records."""
        left = self.plan.records - self.statistics.records
        records = size_bytes = 0
        if left > 2 * self._poll_records_max:
            for columns in self._consumer.consume_columns(POLL_S).values():
                records += columns.rows
                size_bytes += len(columns.keys.data) + len(columns.values.data)
            self._poll_records_max = max(self._poll_records_max, records)
        else:
            for taken in self._consumer.batches(POLL_S, left).values():
                records += len(taken)
                size_bytes += sum([len(each.value or b"") + len(each.key or b"") for each in taken])
        self.statistics.add(records, size_bytes)
        return records


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
