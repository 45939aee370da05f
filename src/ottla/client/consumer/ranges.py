"""`Ranges`: reads given offsets of given partitions, once and completely, for pipelines and mirrors.

It needs no group and makes no object per record. An offset that is not there any more is an error: a range is complete, or it
raises. A range may end in transaction markers, in records of aborted transactions or in offsets that compaction has removed:
it ends where the position reaches its end, or where the broker says that nothing follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ottla.client.consumer import columns
from ottla.client.consumer.core import ConsumerCore
from ottla.client.consumer.reader import Views
from ottla.ids import TopicPartition
from ottla.records.batch import BatchView

FORMS: Final = ("arrow", "columns", "batches", "bytes", "views")
Chunk = tuple[TopicPartition, Any]


def checked_form(form: str) -> str:
    """`form`, or a `ValueError` that names those there are."""
    if form not in FORMS:
        raise ValueError(f"form={form!r}: a range is read as {', '.join(FORMS)}")
    return form


class Taken(NamedTuple):
    """What one step has read. It may be nothing: markers alone move the position too."""

    views: dict[TopicPartition, Views]


class Ranges:
    """Progress through (first offset, end offset) of each partition."""

    def __init__(self, ranges: Mapping[TopicPartition, tuple[int, int]], form: str) -> None:
        for each, (first, end) in ranges.items():
            if not 0 <= first <= end:
                raise ValueError(
                    f"the range of {each} goes from {first} to {end}: give the first offset and the one after the last"
                )
        self._ends = {each: end for each, (first, end) in ranges.items() if first < end}
        self._starts = {each: first for each, (first, end) in ranges.items() if first < end}
        self._make: Callable[[TopicPartition, Views, int], Any] = {
            "arrow": _arrow,
            "columns": columns.to_columns,
            "batches": _batches,
            "bytes": _bytes,
            "views": _views,
        }[checked_form(form)]

    def begin(self, core: ConsumerCore) -> None:
        """Assign the partitions and go to their first offsets. Runs on the loop."""
        core.assign(list(self._starts))
        for each, first in self._starts.items():
            core.seek(each, first)
            state = core.subscription.state(each)
            state.is_strict = True
            state.until = self._ends[each]

    @property
    def is_done(self) -> bool:
        """Whether every range was read to its end."""
        return not self._ends

    def take(self, core: ConsumerCore) -> Taken | None:
        """What is buffered; None if there is nothing and no range has ended. Runs in the thread that reads."""
        views = core.reader.take_views()
        return Taken(views) if views or self.has_ended(core) else None

    def has_ended(self, core: ConsumerCore) -> bool:
        """Whether a range has ended since `finish_read`."""
        return any(self._is_at_end(core, each, end) for each, end in self._ends.items())

    def unfinished(self, core: ConsumerCore, limit_s: float) -> str:
        """Why reading has stopped before the ends."""
        each, end = next(iter(self._ends.items()))
        position = core.subscription.state(each).position
        at = "-" if position is None else position.offset
        return f"the ranges were not read to their ends: {each} is at offset {at} of {end}, and nothing came for {limit_s:g} s"

    def chunks(self, taken: Taken) -> Iterator[Chunk]:
        """What was fetched, in the form asked for, without what lies outside of the ranges."""
        for each, views in taken.views.items():
            end = self._ends.get(each)
            if end is not None and any(batch.base_offset < end for batch in views.batches):
                yield each, self._make(each, views, end)

    def finish_read(self, core: ConsumerCore) -> None:
        """Stop fetching the partitions whose ranges have been read. Runs on the loop."""
        for each, end in list(self._ends.items()):
            if self._is_at_end(core, each, end):
                del self._ends[each]
                core.pause([each], True)

    def _is_at_end(self, core: ConsumerCore, each: TopicPartition, end: int) -> bool:
        state = core.subscription.state(each)
        if state.position is None:
            return False
        offset = state.position.offset
        if offset >= end:
            return True
        known_end = core.parts.fetcher.end_offset(state)
        return state.nothing_from == offset and known_end is not None and known_end >= end


def _arrow(partition: TopicPartition, views: Views, end: int) -> Any:
    return columns.to_arrow(partition, columns.to_columns(partition, views, end))


def _batches(partition: TopicPartition, views: Views, end: int) -> list[BatchView]:
    """Batches that hold the records of the range and no others: those at its ends are rebuilt."""
    return columns.trimmed(views, end)


def _bytes(partition: TopicPartition, views: Views, end: int) -> list[memoryview]:
    """Whole batches as they are on the wire; the first and the last may reach beyond the range."""
    return [batch.data for batch in views.batches if batch.base_offset < end]


def _views(partition: TopicPartition, views: Views, end: int) -> Views:
    """Whole batches that are not decoded, with the offset at which the caller's records begin."""
    return Views(views.first, [batch for batch in views.batches if batch.base_offset < end])
