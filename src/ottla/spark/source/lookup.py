"""Which offsets an option means: the driver asks the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ottla import TopicPartition
from ottla.spark import clients
from ottla.spark.errors import SourceError
from ottla.spark.source.asking import ask
from ottla.spark.source.offsets import EARLIEST, LATEST, Offsets
from ottla.spark.source.options import SourceOptions
from ottla.spark.source.where import Where


def find_offsets(options: SourceOptions, where: Where, partitions: Iterable[TopicPartition]) -> Offsets:
    """The offset that `where` means for each partition."""
    wanted = list(partitions)
    found: Offsets = dict.fromkeys(wanted, where.everywhere)
    if where.offsets is not None:
        _check_covers(where, where.offsets, wanted)
        found |= where.offsets
    elif where.time_ms is not None:
        found |= _at_times(options, where, dict.fromkeys(wanted, where.time_ms))
    elif where.times_ms is not None:
        _check_covers(where, where.times_ms, wanted)
        found |= _at_times(options, where, where.times_ms)
    elif where.group is not None:
        found |= _committed(options, where.group, wanted)
    firsts = first_offsets(options, [each for each, offset in found.items() if offset == EARLIEST])
    ends = end_offsets(options, [each for each, offset in found.items() if offset == LATEST])
    return found | firsts | ends


def first_offsets(options: SourceOptions, partitions: list[TopicPartition]) -> Offsets:
    """The offset of the oldest record of each partition."""
    return _ask_consumer(options, "first", partitions, lambda one, limit_s: one.beginning_offsets(*partitions, timeout=limit_s))


def end_offsets(options: SourceOptions, partitions: list[TopicPartition]) -> Offsets:
    """The offset after the last record of each partition that a reader may see: under read_committed, the last stable one."""
    return _ask_consumer(options, "last", partitions, lambda one, limit_s: one.end_offsets(*partitions, timeout=limit_s))


def settled_ends(options: SourceOptions, partitions: list[TopicPartition], starts: Offsets) -> Offsets:
    """The ends. Asked again while one lies before its start: after an election a leader learns its end a moment later."""
    for attempt in range(options.lookup_attempts):
        if attempt:
            time.sleep(options.lookup_interval_ms / 1000)
        ends = end_offsets(options, partitions)
        if all(ends[each] >= start for each, start in starts.items()):
            break
    return ends


def _ask_consumer(
    options: SourceOptions, which: str, partitions: list[TopicPartition], call: Callable[[Any, float], Offsets]
) -> Offsets:
    if not partitions:
        return {}

    def look(limit_s: float) -> Offsets:
        with clients.consumer(options.client) as consumer:
            return call(consumer, limit_s)

    return ask(options, f"the {which} offsets of {_named(partitions)}", look)


def _at_times(options: SourceOptions, where: Where, times_ms: Mapping[TopicPartition, int]) -> Offsets:
    def look(limit_s: float) -> Mapping[TopicPartition, Any]:
        with clients.consumer(options.client) as consumer:
            asked: dict[Any, Any] = dict(times_ms)
            return consumer.offsets_for_times(asked, timeout=limit_s)

    found: Offsets = {}
    for each, answer in ask(options, f"the offsets by time of {_named(list(times_ms))}", look).items():
        if answer is None and not where.is_latest_without_match:
            raise SourceError(
                f"{where.option}: {each} has no record at or after {times_ms[each]} ms; give an earlier time, or set "
                "startingOffsetsByTimestampStrategy to latest to start at its end in that case"
            )
        found[each] = LATEST if answer is None else answer.offset
    return found


def _committed(options: SourceOptions, group: str, partitions: list[TopicPartition]) -> Offsets:
    """The committed offsets of a group. Partitions without one are left out."""

    def look(limit_s: float) -> Any:
        return clients.admin(options.client).with_timeout(limit_s).list_consumer_group_offsets({group: partitions})[group]

    found = ask(options, f"the offsets of group {group}", look)
    return {each: answer.offset for each, answer in found.items() if answer is not None}


def _check_covers(where: Where, given: Mapping[TopicPartition, int], wanted: list[TopicPartition]) -> None:
    """As in Spark's own source: all partitions, and no others."""
    missing = sorted(set(wanted) - given.keys())
    unknown = sorted(given.keys() - set(wanted))
    if missing:
        raise SourceError(f"{where.option} must name every partition that is read: it lacks {_named(missing)}")
    if unknown:
        raise SourceError(f"{where.option} names {_named(unknown)}, which is not there to be read: leave it out")


def _named(partitions: list[TopicPartition]) -> str:
    names = [str(each) for each in partitions[:4]]
    more = f" and {len(partitions) - 4} more" if len(partitions) > 4 else ""
    return ", ".join(names) + more
