"""What the driver asks the cluster: which partitions there are, and which offsets an option means.

While no broker answers it waits, and says so every few seconds. A call is tried with a short limit at first and longer ones
later. In all it is given `fetchOffset.numRetries` times default.api.timeout.ms.

A broker whose metadata lags may not know a topic yet, or may know its former id. So the loss of something that was read before
is believed only after all answers have shown it for a few seconds.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ottla import TopicPartition
from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import RetriableError, UnknownTopicOrPartitionError
from ottla.errors.texts import near_words
from ottla.ids import Uuid
from ottla.spark import clients
from ottla.spark.errors import SourceError
from ottla.spark.source.offsets import EARLIEST, LATEST, Offsets, TopicIds, Where, is_replaced
from ottla.spark.source.options import SourceOptions

logger = logging.getLogger("ottla.spark")

FIRST_TRY_S = 5.0
API_TIMEOUT_MS = 60_000

T = TypeVar("T")


def ask(options: SourceOptions, what: str, call: Callable[[float], T]) -> T:
    """The result of `call`, which gets the seconds it may take. `what` is asked for, for messages: "the topics"."""
    began_s = time.monotonic()
    total_s = options.lookup_attempts * int(options.client.get("default.api.timeout.ms", API_TIMEOUT_MS)) / 1000
    limit_s = first_s = min(FIRST_TRY_S, total_s)
    while True:
        tried_s = time.monotonic()
        try:
            return call(limit_s)
        except RetriableError as error:
            now_s = time.monotonic()
            left_s = began_s + total_s - now_s
            if limit_s == first_s and (mismatch := protocol_mismatch(options.client)):
                raise SourceError(f"{options.bootstrap_servers} did not tell {what}: {mismatch}") from None
            if left_s <= 0:
                raise SourceError(
                    f"{options.bootstrap_servers} did not tell {what} within {total_s:g} s: {error}; start the broker, or "
                    "correct kafka.bootstrap.servers"
                ) from None
            logger.warning(
                "waiting for a broker at %s to tell %s, for %.0f s already: %s",
                options.bootstrap_servers,
                what,
                now_s - began_s,
                error,
            )
            # A call that failed at once is not repeated at once.
            time.sleep(max(0.0, min(left_s, options.lookup_interval_ms / 1000 - (now_s - tried_s))))
            limit_s = max(0.001, min(left_s, limit_s * 1.5))


NAMES_SHOWN = 8
BELIEVED_AFTER_S = 5.0
"""For how long all answers must show the same loss."""
ASKED_FOR_S_MAX = 30.0
ASK_INTERVAL_S = 0.5


@dataclass(frozen=True)
class ReadablePartitions:
    """The partitions that are there to be read, sorted, and the ids of their topics."""

    partitions: list[TopicPartition] = field(default_factory=list)
    topic_ids: dict[str, Uuid] = field(default_factory=dict)


def find_partitions(options: SourceOptions, *, must_exist: bool = True) -> ReadablePartitions:
    """The partitions to read now. With `must_exist`, a topic that is not there is an error that says which are."""
    if options.pattern is not None:
        return _matching(options, options.pattern)
    names = sorted({each.topic for each in options.partitions} or set(options.topics))
    counts, ids = _described(options, names)
    missing = [name for name in names if name not in counts]
    if missing and must_exist:
        raise SourceError(
            f"there is no topic {', '.join(missing)} at {options.bootstrap_servers}; {_there_is(options, missing)}"
        )
    if not options.partitions:
        return ReadablePartitions(_all_of(counts), ids)
    there = [each for each in options.partitions if each.partition < counts.get(each.topic, 0)]
    if must_exist and len(there) < len(options.partitions):
        each = next(each for each in options.partitions if each not in there)
        raise SourceError(
            f"assign names partition {each.partition} of {each.topic}, which has {counts[each.topic]}: they count from 0"
        )
    return ReadablePartitions(sorted(there), ids)


def settled_partitions(options: SourceOptions, known: Collection[TopicPartition], ids: TopicIds) -> ReadablePartitions:
    """The partitions to read now. Asks again while one of `known` is missing, or a topic has another id than in `ids`."""
    began_s = time.monotonic()
    since_s, before = began_s, None
    while True:
        found = find_partitions(options, must_exist=False)
        missing = set(known).difference(found.partitions)
        replaced = {name for name in ids if is_replaced(name, ids, found.topic_ids)}
        lost = missing, {name: found.topic_ids[name] for name in replaced}
        now_s = time.monotonic()
        if not missing and not replaced:
            return found
        if lost != before:
            since_s, before = now_s, lost
            names = sorted({each.topic for each in missing} | replaced)
            logger.info("%s seems to be gone or to be made again: asking again for %g s", ", ".join(names), BELIEVED_AFTER_S)
        if now_s - since_s >= BELIEVED_AFTER_S or now_s - began_s >= ASKED_FOR_S_MAX:
            return found
        time.sleep(ASK_INTERVAL_S)


def _matching(options: SourceOptions, pattern: str) -> ReadablePartitions:
    """As in Spark's own source, the pattern may match anywhere in the name, and internal topics are left out."""
    search = re.compile(pattern).search
    topics = ask(options, "its topics", lambda limit_s: clients.admin(options.client).with_timeout(limit_s).list_topics())
    chosen = {name: topic for name, topic in topics.items() if search(name)}
    counts = {name: topic.partitions for name, topic in chosen.items()}
    return ReadablePartitions(_all_of(counts), {name: topic.id for name, topic in chosen.items()})


def _described(options: SourceOptions, names: list[str]) -> tuple[dict[str, int], dict[str, Uuid]]:
    def describe(limit_s: float) -> tuple[dict[str, int], dict[str, Uuid]]:
        counts, ids = {}, {}
        results = clients.admin(options.client).with_timeout(limit_s).describe_topics(names)
        for name in names:
            try:
                found = results[name]
            except UnknownTopicOrPartitionError:
                continue
            counts[name], ids[name] = len(found.partitions), found.id
        return counts, ids

    return ask(options, f"the partitions of {', '.join(names)}", describe)


def _all_of(counts: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(name, number) for name, count in sorted(counts.items()) for number in range(count)]


def _there_is(options: SourceOptions, missing: list[str]) -> str:
    topics = ask(options, "its topics", lambda limit_s: clients.admin(options.client).with_timeout(limit_s).list_topics())
    near = near_words(missing[0], [name for name in topics if not name.startswith("__")], cutoff=0.75)
    return f"did you mean {near[0]}? {listed(topics).replace('it', 'It', 1)}" if near else listed(topics)


def listed(topics: Iterable[str]) -> str:
    """The topics that there are, for a message: the first few by name."""
    names = sorted(name for name in topics if not name.startswith("__"))
    if not names:
        return "it has no topic yet"
    if len(names) == 1:
        return f"it has only {names[0]}"
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"it has {', '.join(names[:NAMES_SHOWN])}{more}"


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
