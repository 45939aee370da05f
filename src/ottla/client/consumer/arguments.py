"""What callers of a consumer may write for partitions, offsets and times, made into one form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ottla.client.consumer.offset_calls import CommitCallback
from ottla.client.consumer.record import ConsumerRecord as TypedRecord
from ottla.client_core.deserializers import resolve_deserializer
from ottla.client_core.group.membership import LeaveOption, ServerRegex, Subscription
from ottla.client_core.offsets import OffsetAndMetadata
from ottla.config.client import ConsumerSettings, consumer_settings, load
from ottla.ids import TopicPartition, topic_name_fault
from ottla.records.kernels import ConsumerRecord, Deserializer

if TYPE_CHECKING:
    from ottla.client.interceptors import ConsumerInterceptors

PartitionLike = TopicPartition | tuple[str, int]
Partitions = PartitionLike | Iterable[PartitionLike] | str | int
"""One argument of a call about partitions: a partition, a collection of them, or one of a topic and a number."""
TimeLike = int | float | datetime
"""Milliseconds since 1970, or a datetime; one without a time zone is UTC."""
T = TypeVar("T")
ByPartition = Mapping[TopicPartition, T] | Mapping[tuple[str, int], T]
"""Two mappings, because the type of a mapping's keys is invariant: a dict of TopicPartitions is none of tuples."""
Topics = str | Iterable[str] | re.Pattern[str] | ServerRegex
CommitOffsets = ByPartition[int | OffsetAndMetadata] | TypedRecord | Iterable[TypedRecord]
"""Offsets of the next records to read, or records that have been dealt with."""


def partition_of(given: Any) -> TopicPartition:
    """One partition, given as (topic, number)."""
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], int):
        if given[1] < 0:
            raise ValueError(f"partition {given[1]} of topic {given[0]}: numbers start at 0")
        return TopicPartition(*given)
    raise TypeError(f"a partition is a TopicPartition or (topic, number), not {given!r}")


def is_one_partition(given: tuple[Any, ...]) -> bool:
    """Whether positional arguments name one partition, as (topic, number) or as topic, number; not a collection of one."""
    if len(given) == 2:
        return isinstance(given[0], str)
    return len(given) == 1 and isinstance(given[0], tuple) and len(given[0]) == 2 and isinstance(given[0][0], str)


def partitions_of(given: tuple[Any, ...]) -> list[TopicPartition]:
    """Partitions, given one by one or as one collection of them."""
    if len(given) == 1 and not is_one_partition(given):
        if isinstance(given[0], str) or not isinstance(given[0], Iterable):
            raise TypeError(f"partitions are TopicPartitions, not {given[0]!r}")
        given = tuple(given[0])
    elif len(given) == 2 and isinstance(given[0], str):
        given = (given,)
    return list(dict.fromkeys(partition_of(each) for each in given))


def subscription_of(given: Any) -> Subscription:
    """What to subscribe to: topic names, a compiled pattern, or a pattern for the coordinator."""
    if isinstance(given, re.Pattern | ServerRegex):
        return given
    if isinstance(given, str):
        if given.startswith("^"):  # librdkafka's way to write a pattern
            return re.compile(given)
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"subscribe() takes topic names or a compiled pattern, not {given!r}")
    names = list(dict.fromkeys(given))
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a topic is a str, not {name!r}")
        fault = topic_name_fault(name)
        if fault is not None:
            raise ValueError(f"{fault}; for a pattern pass re.compile(...)")
    if not names:
        raise ValueError("subscribe() needs at least one topic; unsubscribe() ends a subscription")
    return names


def leave_option(leave: bool | None) -> LeaveOption:
    """Whether to leave the group at the end: True, False, or as Kafka does by default (static members stay)."""
    if leave is None:
        return LeaveOption.DEFAULT
    return LeaveOption.LEAVE_GROUP if leave else LeaveOption.REMAIN_IN_GROUP


def offsets_of(given: Any) -> dict[TopicPartition, OffsetAndMetadata] | None:
    """Offsets to commit: a mapping of partitions to offsets, or records, each of which is committed as dealt with."""
    if given is None:
        return None
    if isinstance(given, ConsumerRecord):
        given = [given]
    if isinstance(given, Mapping):
        return {partition_of(each): _offset_of(value) for each, value in given.items()}
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for record in given if isinstance(given, Iterable) else [given]:
        if not isinstance(record, ConsumerRecord):
            raise TypeError(f"commit() takes records or {{TopicPartition: offset}}, not {record!r}")
        each = TopicPartition(record.topic, record.partition)
        if each not in found or found[each].offset <= record.offset:
            epoch = record.leader_epoch if record.leader_epoch >= 0 else None
            found[each] = OffsetAndMetadata(record.offset + 1, "", epoch)
    return found


def _offset_of(value: Any) -> OffsetAndMetadata:
    if isinstance(value, int):
        value = OffsetAndMetadata(value)
    if not isinstance(value, OffsetAndMetadata):
        raise TypeError(f"an offset to commit is an int or an OffsetAndMetadata, not {value!r}")
    if value.offset < 0:
        raise ValueError(f"an offset to commit must not be negative: {value.offset}")
    return value


def timestamp_of(value: TimeLike) -> int:
    """Milliseconds since 1970."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        value = aware.timestamp() * 1000
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a time is a datetime or a number of milliseconds since 1970, not {value!r}")
    if value < 0:
        raise ValueError(f"a time is in milliseconds since 1970, and not before, but this one is {value:.0f}")
    return int(value)


def seek_target(partition: Any, offset: Any) -> tuple[TopicPartition, int, int | None]:
    """Partition, offset and leader epoch of a seek, which may be given a record or an OffsetAndMetadata."""
    if isinstance(partition, ConsumerRecord):
        if offset is None:
            offset = partition.offset
        partition = TopicPartition(partition.topic, partition.partition)
    epoch = None
    if isinstance(offset, OffsetAndMetadata):
        offset, epoch = offset.offset, offset.leader_epoch
    if not isinstance(offset, int) or isinstance(offset, bool):
        raise TypeError(f"seek() needs an offset, not {offset!r}")
    if offset < 0:
        raise ValueError(f"seek() to offset {offset}: offsets start at 0; use seek_to_beginning() or seek_to_end()")
    return partition_of(partition), offset, epoch


def callback_of(given: CommitCallback | None) -> CommitCallback | None:
    """The callback of a commit, which is called much later: what cannot be called is refused now."""
    if given is not None and not callable(given):
        raise TypeError(f"callback is called with offsets and error, and must be a callable, not {given!r}")
    return given


# What a consumer is made with: its settings, and the deserializers that they name.


class ConsumerOptions(NamedTuple):
    """The settings of a consumer, ready for use."""

    settings: ConsumerSettings
    deserializers: tuple[Deserializer | None, Deserializer | None]
    """Of the key and of the value; None where bytes are handed out as they are."""
    interceptors: ConsumerInterceptors | None = None


def consumer_options(bootstrap_servers: Any, config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ConsumerOptions:
    """The options for what a caller has given; a mistake raises at once."""
    settings = consumer_settings(bootstrap_servers, config, keywords)
    key = resolve_deserializer(load("key.deserializer", settings.key_deserializer), is_key=True)
    value = resolve_deserializer(load("value.deserializer", settings.value_deserializer), is_key=False)
    chain = None
    if settings.interceptor_classes:
        from ottla.client.interceptors import consumer_interceptors  # late: few consumers have some

        chain = consumer_interceptors(settings, settings.interceptor_classes)
    return ConsumerOptions(settings, (key, value), chain)
