"""Offsets as users and checkpoints write them: `{"orders": {"0": 23, "1": -2}}`, as in Spark's own Kafka source.

A checkpoint also holds the ids of the topics, as names without partitions: `"orders@Hs2nV9wWQ2Kq0yJc3p5nXA": {}`. No topic's
name has an `@`. Spark's own source and earlier versions of this one read such an entry as a topic that adds nothing.

`Where` is the place that startingOffsets, endingOffsets and their by-timestamp forms describe.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ottla import TopicPartition
from ottla.ids import ZERO_UUID, InvalidUuid, Uuid, uuid_parse, uuid_text
from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.options import Options

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


GROUP_PREFIX = "group:"


@dataclass(frozen=True)
class Where:
    """Offsets as an option describes them: a fixed place for all partitions, numbers for each, a time, or a group's offsets."""

    everywhere: int = EARLIEST
    """EARLIEST or LATEST, for partitions that nothing else says anything about."""
    offsets: Offsets | None = None
    time_ms: int | None = None
    times_ms: Offsets | None = None
    group: str | None = None
    is_latest_without_match: bool = False
    """Whether a time after the last record means the end of the partition, instead of an error."""
    option: str = ""
    """The option that says so, for messages."""

    @property
    def is_repeatable(self) -> bool:
        """Whether it means the same offsets when it is looked up again later, as far as the log still holds them."""
        if self.group is not None:
            return False
        if self.time_ms is not None or self.times_ms is not None:
            return not self.is_latest_without_match
        if self.offsets is not None:
            return LATEST not in self.offsets.values()
        return self.everywhere == EARLIEST


FROM_EARLIEST = Where(EARLIEST, option="startingOffsets")
TO_LATEST = Where(LATEST, option="endingOffsets")


def read_where(options: Options, side: str, default: int) -> Where:
    """What the options of `side` (starting, ending) say. As in Spark's own source, a time goes before offsets."""
    strategy = options.get("startingOffsetsByTimestampStrategy") or "error"
    if strategy not in ("error", "latest"):
        raise SparkOptionError(f"startingOffsetsByTimestampStrategy is {strategy!r}: it must be error or latest")
    is_latest = side == "ending" or strategy == "latest"
    name = f"{side}Timestamp"
    time_ms = options.whole_number(name, 0)
    if time_ms is not None:
        return Where(default, time_ms=time_ms, is_latest_without_match=is_latest, option=name)
    name = f"{side}OffsetsByTimestamp"
    text = options.get(name)
    if text is not None:
        times_ms = parse_numbers(name, text, "milliseconds since 1970")
        for each, number in times_ms.items():
            if number < 0:
                raise SparkOptionError(f"{name} has {number} for {each}: give milliseconds since 1970")
        return Where(default, times_ms=times_ms, is_latest_without_match=is_latest, option=name)
    name = f"{side}Offsets"
    text = options.get(name)
    return Where(default, option=name) if text is None else _read_offsets(name, text.strip(), side, default)


def _read_offsets(name: str, text: str, side: str, default: int) -> Where:
    lower = text.lower()
    if lower == "latest" and side == "starting" and default == EARLIEST:
        raise SparkOptionError("startingOffsets is latest, which leaves a batch read nothing to read: use earliest or offsets")
    if lower == "earliest" and side == "ending":
        raise SparkOptionError("endingOffsets is earliest, which leaves nothing to read: use latest or offsets")
    if lower in ("earliest", "latest"):
        return Where(EARLIEST if lower == "earliest" else LATEST, option=name)
    if side == "starting" and lower.startswith(GROUP_PREFIX):
        group = text[len(GROUP_PREFIX) :].strip()
        if not group:
            raise SparkOptionError("startingOffsets is group: without a name: write group:NAME to start where that group is")
        return Where(EARLIEST, group=group, option=name)
    if not text.startswith("{"):
        words = "earliest, latest, group:NAME" if side == "starting" else "latest"
        raise SparkOptionError(f'{name} is {text!r}: it must be {words} or JSON such as {{"orders": {{"0": 23}}}}')
    offsets = parse_numbers(name, text, "an offset (-2 is the earliest, -1 the latest)")
    for each, offset in offsets.items():
        if offset < EARLIEST or (offset == EARLIEST and side == "ending"):
            raise SparkOptionError(f"{name} has {offset} for {each}: give an offset of 0 or more, or -1 for the latest")
        if offset == LATEST and side == "starting" and default == EARLIEST:
            raise SparkOptionError(f"{name} has -1 (latest) for {each}, which leaves a batch read nothing to read there")
    return Where(default, offsets=offsets, option=name)
