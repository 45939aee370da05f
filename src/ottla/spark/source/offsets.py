"""Offsets as users and checkpoints write them: `{"orders": {"0": 23, "1": -2}}`, as in Spark's own Kafka source.

A checkpoint also holds the ids of the topics, as names without partitions: `"orders@Hs2nV9wWQ2Kq0yJc3p5nXA": {}`. No topic's
name has an `@`. Spark's own source and earlier versions of this one read such an entry as a topic that adds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ottla import TopicPartition
from ottla.ids import ZERO_UUID, InvalidUuid, Uuid, uuid_parse, uuid_text
from ottla.spark.errors import SourceError, SparkOptionError

EARLIEST = -2
LATEST = -1

BEFORE_ID = "@"

Offsets = dict[TopicPartition, int]
TopicIds = Mapping[str, Uuid]


def to_json(offsets: Mapping[TopicPartition, int], ids: TopicIds | None = None) -> dict[str, dict[str, int]]:
    """Offsets, and the ids of their topics, as checkpoints keep them, sorted: the same offsets always make the same text."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    for topic in list(found):
        known = ZERO_UUID if ids is None else ids.get(topic, ZERO_UUID)
        if known != ZERO_UUID:
            found[f"{topic}{BEFORE_ID}{uuid_text(known)}"] = {}
    return found


def from_json(found: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Offsets of a checkpoint; a `SourceError` if another source has written it."""
    if not isinstance(found, Mapping) or not all(isinstance(parts, Mapping) for parts in found.values()):
        raise SourceError(f"the checkpoint has the offset of another source, which is not one of topics: {json.dumps(found)}")
    return {TopicPartition(topic, int(partition)): each for topic, parts in found.items() for partition, each in parts.items()}


def ids_from_json(found: Mapping[str, Any]) -> dict[str, Uuid]:
    """The topic ids of a checkpoint: none if Spark's own source or an earlier version wrote it."""
    ids = {}
    for name in found:
        topic, mark, text = name.partition(BEFORE_ID)
        if mark:
            try:
                ids[topic] = uuid_parse(text)
            except InvalidUuid:
                continue
    return ids


def is_replaced(topic: str, before: TopicIds, now: TopicIds) -> bool:
    """Whether the topic was deleted and created again. False where an id is not known."""
    old, new = before.get(topic, ZERO_UUID), now.get(topic, ZERO_UUID)
    return old != new and ZERO_UUID not in (old, new)


def parse_numbers(name: str, text: str, what: str) -> Offsets:
    """The numbers (offsets, or times) by partition of an option; `SparkOptionError` names the option."""
    example = f'{name} must be JSON such as {{"orders": {{"0": 23}}}}, with {what} for each partition'
    try:
        found: Any = json.loads(text)
    except ValueError as problem:
        raise SparkOptionError(f"{example}; {text!r} is no JSON: {problem}") from None
    if not isinstance(found, dict) or not all(isinstance(parts, dict) for parts in found.values()):
        raise SparkOptionError(f"{example}, not {text}")
    made: Offsets = {}
    for topic, parts in found.items():
        for partition, number in parts.items():
            if not partition.isdecimal() or isinstance(number, bool) or not isinstance(number, int):
                raise SparkOptionError(f"{example}; {topic} has {json.dumps({partition: number})}")
            made[TopicPartition(topic, int(partition))] = number
    return made
