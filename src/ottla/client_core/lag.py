"""How far groups are behind, and what that means: the status of a partition by Burrow's rules, rates and trends. Pure.

Owns the windows of commits and the samples of an hour; asks nobody. `client/lag.py` fills them from any cluster.

A window holds the last `WINDOW` commits of a group in a partition. A commit that comes less
than `distance_ms` after the one before replaces its offset and keeps its time, as in Burrow: clients that commit with every
record would otherwise have a window of a second.

The rules of `evaluate`, in this order, for a lag above the limits:

    STOP    nothing was committed for longer than the window is long, and the group was not at the end lately
    REWIND  a commit is lower than the one before, and the group has not come back to where it was
    STALL   every commit was behind, and all are the same offset
    WARN    every commit was behind, and the lag never fell
    OK      everything else
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from ottla.records.batch import BatchView
from ottla.records.reader import iterate_records

WINDOW = 10
"""Commits and end offsets that the rules look at, as in Burrow."""
HISTORY_S = 3600
SAMPLES = 60
"""Samples of a group's lag that are kept: one a minute for an hour."""


def first_time_ms(
    view: BatchView, offset: int, aborted: Mapping[int, int] | None = None, *, unpacks: bool = True
) -> int | None:
    """The timestamp of the first record of a batch from `offset` on; None if it has none that a consumer would get.

    `aborted` are the first offsets of aborted transactions by producer: their records are not handed out. The batch must be
    whole to be unpacked. Without `unpacks` the records of compressed batches are not looked at: their first timestamp stands
    for all. After compaction that may be the timestamp of a record that is gone; the batch then counts as a little older.
    """
    if view.is_control or view.last_offset < offset or not view.count:
        return None
    if aborted and view.is_transactional and aborted.get(view.producer_id, view.next_offset) <= view.last_offset:
        return None
    if view.is_append_time:
        return view.max_timestamp
    if view.is_compressed and not unpacks:
        return view.max_timestamp if view.has_delete_horizon else view.base_timestamp
    return next((each.timestamp for each in iterate_records(view) if each.offset >= offset), None)


class Status(IntEnum):
    """Burrow's statuses and numbers; IDLE is ours."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6
    IDLE = 7
    """Of a group: nobody reads, and nothing was committed while it was watched."""


class Limits(NamedTuple):
    """From when on lag counts. Burrow's own defaults: any lag, any number of commits."""

    lag: int = 0
    """Records behind that are no reason for a status."""
    lag_s: float = 0.0
    """Seconds behind that are none, where the seconds are known."""
    complete: float = 0.0
    """The share of the window that must be filled."""


ANY = Limits()
SENSIBLE = Limits(lag=0, lag_s=10.0, complete=0.3)
"""What commands and the console use: ten seconds behind is how consumers work."""


class Commit(NamedTuple):
    """A committed offset, when it was committed, and how many records were behind it then."""

    offset: int
    at_ms: int
    lag: int


def evaluate(
    commits: Sequence[Commit], ends: Sequence[int], lag: int, now_ms: int, limits: Limits = ANY, lag_s: float | None = None
) -> Status:
    """The status of a partition: `commits` and `ends` (end offsets) oldest first, `lag` as of now."""
    if not commits or len(commits) < limits.complete * WINDOW:
        return Status.OK
    if lag <= limits.lag or (lag_s is not None and lag_s <= limits.lag_s):
        return Status.OK
    first, last = commits[0], commits[-1]
    if now_ms - last.at_ms > last.at_ms - first.at_ms and not any(end <= last.offset for end in ends):
        return Status.STOP
    rewound = next((number for number in range(1, len(commits)) if commits[number].offset < commits[number - 1].offset), None)
    if rewound is not None and all(each.offset < commits[rewound - 1].offset for each in commits[rewound:]):
        return Status.REWIND
    if all(each.lag > limits.lag for each in commits):
        if all(each.offset == first.offset for each in commits):
            return Status.STALL
        if all(after.lag >= before.lag for before, after in pairwise(commits)):
            return Status.WARN
    return Status.OK


def worst(statuses: Iterable[Status]) -> Status:
    """The status of a group from those of its partitions. STOP, STALL and REWIND of a partition are ERR of the group."""
    return min(max(statuses, default=Status.OK), Status.ERR)


class Window:
    """The last commits of one group in one partition: numbers in one array, because a cluster may have 100,000 of them."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = array("q")

    def committed(self, offset: int, end: int, at_ms: int, distance_ms: int = 0) -> None:
        """Note a commit."""
        numbers = self._numbers
        if numbers and at_ms - numbers[-2] < distance_ms:
            numbers[-3], numbers[-1] = offset, max(0, end - offset)
            return
        numbers.extend((offset, at_ms, max(0, end - offset)))
        if len(numbers) > 3 * WINDOW:
            del numbers[:3]

    @property
    def offset(self) -> int | None:
        """The last committed offset."""
        return self._numbers[-3] if self._numbers else None

    @property
    def commits(self) -> list[Commit]:
        """Oldest first."""
        numbers = self._numbers
        return [Commit(*numbers[at : at + 3]) for at in range(0, len(numbers), 3)]


class Steady:
    """Holds a status until two evaluations in a row say otherwise, so that one late commit is no alarm."""

    __slots__ = ("_next", "status")

    def __init__(self, status: Status = Status.OK) -> None:
        self.status = status
        self._next = status

    def see(self, status: Status) -> Status:
        """The status to show after another evaluation."""
        if status == self._next:
            self.status = status
        self._next = status
        return self.status


class Sample(NamedTuple):
    """A group at one moment: sums over its partitions."""

    at_s: float
    lag: int
    lag_s: float | None
    """The largest of its partitions."""
    offset: int
    end: int


def _sample(at_s: float, lag: float, lag_s: float, offset: float, end: float) -> Sample:
    return Sample(at_s, int(lag), None if math.isnan(lag_s) else lag_s, int(offset), int(end))


class History:
    """The samples of one group over the last hour: one a minute, and the newest one, which the next replaces."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers = array("d")

    def add(self, sample: Sample) -> None:
        """Note a sample."""
        numbers, width = self._numbers, len(Sample._fields)
        if len(numbers) >= 2 * width and numbers[-width] - numbers[-2 * width] < HISTORY_S / SAMPLES:
            del numbers[-width:]
        numbers.extend(math.nan if each is None else each for each in sample)
        while numbers[0] < sample.at_s - HISTORY_S or len(numbers) > (SAMPLES + 1) * width:
            del numbers[:width]

    @property
    def samples(self) -> list[Sample]:
        """Oldest first, not older than an hour."""
        width, numbers = len(Sample._fields), self._numbers
        return [_sample(*numbers[at : at + width]) for at in range(0, len(numbers), width)]

    def rates(self, over_s: float = 120.0) -> Rates:
        """Records a second in and out, over about the last two minutes."""
        samples = self.samples
        if len(samples) < 2:
            return Rates(None, None)
        last = samples[-1]
        first = next((each for each in samples[:-1] if last.at_s - each.at_s <= over_s), samples[-2])
        passed_s = last.at_s - first.at_s
        if passed_s <= 0:
            return Rates(None, None)
        return Rates(max(0.0, (last.end - first.end) / passed_s), max(0.0, (last.offset - first.offset) / passed_s))


class Rates(NamedTuple):
    """Records a second that come into the partitions of a group, and that it reads; None until it was looked at twice."""

    rate_in: float | None
    rate_out: float | None

    def catch_up_s(self, lag: int | None) -> float | None:
        """Seconds until the group has caught up; None if it never will, or nothing is known."""
        if lag == 0:
            return 0.0
        if lag is None or self.rate_in is None or self.rate_out is None or self.rate_out <= self.rate_in:
            return None
        return lag / (self.rate_out - self.rate_in)
