"""`Sensor`: what was recorded of one thing, as totals since the start and as samples of the last minute.

The statistics are Kafka's: a sample covers `metrics.sample.window.ms` (30 s), and the last `metrics.num.samples` (2) count. A
sample whose last event is older than all of them together is left out. A rate divides by the time since the oldest sample
began, but by no less than all samples except the last: one event a second after the start is not a rate of one per second.

`record` costs a few additions. Averages and rates are computed by `read`, which changes nothing: another thread may read while
the sensor's owner records. Two threads must not record to one sensor at the same time.
"""

from __future__ import annotations

import math
from enum import Enum

NEVER_MS = -(1 << 62)


class Statistic(Enum):
    """A number that can be read from a sensor."""

    TOTAL = "the sum of all values since the start"
    COUNT = "the number of events since the start"
    RATE = "the sum of values per second"
    COUNT_RATE = "events per second"
    COUNT_RATE_PER_HOUR = "events per hour"
    TIME_RATIO = "the share of the time, if values are nanoseconds"
    AVG = "the average value"
    MAX = "the largest value"
    MIN = "the smallest value"
    LAST = "the last value"
    SECONDS_AGO = "seconds since the last event; -1 before the first"
    GAUGE = "not from a sensor: a function returns the current value"

    @property
    def is_counter(self) -> bool:
        """Whether the number only grows."""
        return self in (Statistic.TOTAL, Statistic.COUNT)


class _Sample:
    """The events of one window of time."""

    __slots__ = ("count", "high", "last_ms", "low", "start_ms", "total")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.last_ms = start_ms
        self.count = 0
        self.total: float = 0
        self.high = -math.inf
        self.low = math.inf


class Sensor:
    """Records the values of one thing."""

    __slots__ = ("_older", "_sample", "_sample_count", "_window_ms", "count", "last", "last_ms", "total")

    def __init__(self, window_ms: int = 30_000, sample_count: int = 2) -> None:
        self.total: float = 0
        self.count = 0
        self.last = math.nan
        self.last_ms = NEVER_MS
        self._window_ms = max(window_ms, 1)
        self._sample_count = sample_count
        self._sample = _Sample(NEVER_MS)
        # One more than count: the oldest may overlap the beginning of the time that counts. Replaced, never changed in place,
        # because another thread may be reading it.
        self._older: tuple[_Sample, ...] = ()

    def record(self, value: float, now_ms: int) -> None:
        """Record one event. Called per batch, request or call, not per record."""
        sample = self._sample
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.count += 1
        sample.total += value
        if value > sample.high:
            sample.high = value
        if value < sample.low:
            sample.low = value
        sample.last_ms = self.last_ms = now_ms
        self.total += value
        self.count += 1
        self.last = value

    def _advance(self, now_ms: int) -> _Sample:
        if self._sample.count:
            self._older = (*self._older, self._sample)[-self._sample_count :]
        self._sample = _Sample(now_ms)
        return self._sample

    def read(self, statistic: Statistic, now_ms: int) -> float:
        """One number. Averages, largest and smallest values without an event in the samples are NaN, as in Kafka."""
        match statistic:
            case Statistic.TOTAL:
                return self.total
            case Statistic.COUNT:
                return self.count
            case Statistic.LAST:
                return self.last
            case Statistic.SECONDS_AGO:
                return -1 if self.last_ms == NEVER_MS else max(0, now_ms - self.last_ms) // 1000
        return self._read_samples(statistic, now_ms)

    def _read_samples(self, statistic: Statistic, now_ms: int) -> float:
        oldest_ms = now_ms - self._window_ms * self._sample_count
        samples = [each for each in (*self._older, self._sample) if each.last_ms > oldest_ms]
        total = sum(each.total for each in samples)
        count = sum(each.count for each in samples)
        match statistic:
            case Statistic.AVG:
                return total / count if count else math.nan
            case Statistic.MAX:
                return max(each.high for each in samples) if count else math.nan
            case Statistic.MIN:
                return min(each.low for each in samples) if count else math.nan
            case Statistic.RATE:
                return total * 1000 / self._elapsed_ms(samples, now_ms)
            case Statistic.COUNT_RATE:
                return count * 1000 / self._elapsed_ms(samples, now_ms)
            case Statistic.COUNT_RATE_PER_HOUR:
                return count * 3_600_000 / self._elapsed_ms(samples, now_ms)
            case Statistic.TIME_RATIO:
                return total / 1_000_000 / self._elapsed_ms(samples, now_ms)
        raise ValueError(f"{statistic.name} is not read from a sensor")

    def _elapsed_ms(self, samples: list[_Sample], now_ms: int) -> int:
        elapsed_ms = max(0, now_ms - min((each.start_ms for each in samples), default=now_ms))
        missing = self._sample_count - 1 - elapsed_ms // self._window_ms
        return max(1, elapsed_ms + max(0, missing) * self._window_ms)
