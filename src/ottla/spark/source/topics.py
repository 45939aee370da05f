"""Which partitions a reader reads: the driver asks the cluster, again for every batch of a stream.

A broker whose metadata lags may not know a topic yet, or may know its former id. So the loss of something that was read before
is believed only after all answers have shown it for a few seconds.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ottla import TopicPartition
from ottla.errors import UnknownTopicOrPartitionError
from ottla.errors.texts import near_words
from ottla.ids import Uuid
from ottla.spark import clients
from ottla.spark.errors import SourceError
from ottla.spark.source.asking import ask
from ottla.spark.source.offsets import TopicIds, is_replaced
from ottla.spark.source.options import SourceOptions

logger = logging.getLogger("ottla.spark")

NAMES_SHOWN = 8
BELIEVED_AFTER_S = 5.0
"""For how long all answers must show the same loss."""
ASKED_FOR_S_MAX = 30.0
ASK_INTERVAL_S = 0.5


@dataclass(frozen=True)
class Found:
    """The partitions that are there to be read, sorted, and the ids of their topics."""

    partitions: list[TopicPartition] = field(default_factory=list)
    topic_ids: dict[str, Uuid] = field(default_factory=dict)


def find_partitions(options: SourceOptions, *, must_exist: bool = True) -> Found:
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
        return Found(_all_of(counts), ids)
    there = [each for each in options.partitions if each.partition < counts.get(each.topic, 0)]
    if must_exist and len(there) < len(options.partitions):
        each = next(each for each in options.partitions if each not in there)
        raise SourceError(
            f"assign names partition {each.partition} of {each.topic}, which has {counts[each.topic]}: they count from 0"
        )
    return Found(sorted(there), ids)


def settled_partitions(options: SourceOptions, known: Collection[TopicPartition], ids: TopicIds) -> Found:
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


def _matching(options: SourceOptions, pattern: str) -> Found:
    """As in Spark's own source, the pattern may match anywhere in the name, and internal topics are left out."""
    search = re.compile(pattern).search
    topics = ask(options, "its topics", lambda limit_s: clients.admin(options.client).with_timeout(limit_s).list_topics())
    chosen = {name: topic for name, topic in topics.items() if search(name)}
    counts = {name: topic.partitions for name, topic in chosen.items()}
    return Found(_all_of(counts), {name: topic.id for name, topic in chosen.items()})


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
