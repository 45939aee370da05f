"""From what a user passes to `send` to bytes: serializers, partitioner, headers, and the checks of one record.

Used in calling threads; what it keeps does not change after construction, except the partitioners' states, which only change
under the accumulator's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.client_core.producer.partitioners import (
    CallablePartitioner,
    DefaultPartitioner,
    RoundRobinPartitioner,
    TopicState,
    resolve_partitioner,
)
from ottla.client_core.serializers import refuse_unserialized, resolve_serializer
from ottla.config.client import load
from ottla.errors import InvalidTopicError, RecordTooLargeError
from ottla.errors.faults import without_frames
from ottla.ids import topic_name_fault
from ottla.records.kernels import NO_HEADERS, pack_headers, record_size_max

if TYPE_CHECKING:
    from ottla.client.interceptors import ProducerInterceptors
    from ottla.client.producer.core import ProducerCore

Headers = Iterable[tuple[str, bytes | None]] | Mapping[str, bytes | None]
Record = tuple[int, bytes | None, bytes | None, bytes]
"""(timestamp, key, value, packed headers)."""


class PackedHeaders(tuple[tuple[str, bytes | None], ...]):
    """Headers for several records: made into bytes once, when they are first sent."""

    packed: bytes | None = None


class Intake:
    """Prepares records for one producer."""

    def __init__(self, core: ProducerCore) -> None:
        settings = core.settings
        self._core = core
        self.key_serializer = resolve_serializer(load("key.serializer", settings.key_serializer), is_key=True)
        self.value_serializer = resolve_serializer(load("value.serializer", settings.value_serializer), is_key=False)
        found = resolve_partitioner(
            load("partitioner.class", settings.partitioner_class),
            core.world.randomness.below,
            is_adaptive=settings.partitioner_adaptive_partitioning_enable,
            availability_timeout_ms=settings.partitioner_availability_timeout_ms,
        )
        self.interceptors: ProducerInterceptors | None = None
        """None for most producers: their records pay nothing for it."""
        if settings.interceptor_classes:
            from ottla.client.interceptors import producer_interceptors  # late: few producers have some

            self.interceptors = producer_interceptors(settings, settings.interceptor_classes)
        self._partitioner = found
        self.is_default = isinstance(found, DefaultPartitioner)
        """Whether the kernel chooses partitions."""
        self._states: dict[str, TopicState] = {}
        self._leaders: dict[str, tuple[int, int, list[int]]] = {}
        """Topic → (version of the metadata, how many partitions, their leaders' node ids or -1)."""
        self._weighed: dict[str, int] = {}
        """Topic → after which look of the loop its partitions were weighed."""
        if isinstance(found, DefaultPartitioner):
            core.choose_partitions = self._choose_partitions
            core.sender.node_tried = found.node_tried

    def is_plain(self) -> bool:
        """Whether keys and values go into batches as they are, and the kernel chooses partitions."""
        return self.is_default and self.key_serializer is None and self.value_serializer is None and self.interceptors is None

    def key_bytes(self, topic: str, headers: Any, key: Any) -> bytes | None:
        """The key as bytes."""
        if self.key_serializer is not None:
            return self.key_serializer(topic, headers, key)
        if key is None or type(key) is bytes:
            return key
        if isinstance(key, bytes | bytearray | memoryview):
            return bytes(key)
        raise refuse_unserialized(topic, key, is_key=True)

    def value_bytes(self, topic: str, headers: Any, value: Any) -> bytes | None:
        """The value as bytes."""
        if self.value_serializer is not None:
            return self.value_serializer(topic, headers, value)
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise refuse_unserialized(topic, value, is_key=False)

    # The general path of `send`

    def check(self, topic: str, record: Record) -> None:
        """Raise if a record cannot be sent at all: its topic's name, its size, a producer that has failed."""
        check_topic_name(topic)
        if self._core.fault is not None:
            raise without_frames(self._core.fault)
        self.check_size(topic, *record[1:])

    def knows(self, topic: str, partition: int) -> bool:
        """Whether a topic is known, and has this partition."""
        batches = self._core.accumulator.topics.get(topic)
        return batches is not None and partition < batches.partition_count

    def check_partition(self, topic: str, partition: int) -> None:
        """Raise if a topic, which is known now, has no such partition."""
        count = self._core.accumulator.topics[topic].partition_count
        if partition >= count:
            raise ValueError(f"topic {topic} has no partition {partition}: it has {count}, numbered from 0")

    def partition(self, topic: str, partition: int, record: Record, given: tuple[Any, Any]) -> int:
        """The partition that was asked for, or that of a partitioner; -1 for the default one's. The topic is known.

        `given` are key and value before their serializers, for partitioners of the user's.
        """
        found = self._partitioner
        if partition >= 0 or isinstance(found, DefaultPartitioner):
            return partition
        state = self._state(topic)
        if isinstance(found, CallablePartitioner):
            return found.choose_for(state, given[0], record[1], given[1], record[2])
        assert isinstance(found, RoundRobinPartitioner)
        with self._core.accumulator.lock:
            return found.choose(state)

    def _state(self, topic: str) -> TopicState:
        # The accumulator's count, not the metadata's: the metadata forgets topics that are idle or deleted, and with another
        # count a key would change its partition.
        count = self._core.accumulator.topics[topic].partition_count
        version = self._core.metadata.version
        state = self._states.get(topic)
        if state is not None and self._leaders[topic][:2] == (version, count):
            return state
        found = [self._core.metadata.leader(topic, partition) for partition in range(count)]
        leaders = [-1 if leader is None else leader[0] for leader in found]
        self._leaders[topic] = (version, count, leaders)
        available = [partition for partition, leader in enumerate(leaders) if leader >= 0]
        if state is None:
            state = self._states[topic] = TopicState(topic, count, available)
        else:
            state.update(count, available)
        return state

    def _choose_partitions(self, topic: str, count: int, number: int) -> list[int]:
        """The next partitions for records without a key; called under the accumulator's lock."""
        assert isinstance(self._partitioner, DefaultPartitioner)
        state = self._state(topic)
        accumulator = self._core.accumulator
        if self._weighed.get(topic) != accumulator.looks:  # as Kafka: weights are made once for each round of sending
            self._weighed[topic] = accumulator.looks
            self._partitioner.observe(state, accumulator.lengths(topic), self._leaders[topic][2])
        return self._partitioner.next_partitions(state, number)

    def check_size(self, topic: str, key: bytes | None, value: bytes | None, headers: bytes) -> None:
        """Raise if a record cannot be sent at all."""
        size = record_size_max(key, value, headers)
        settings = self._core.settings
        for limit, name in ((settings.max_request_size, "max.request.size"), (settings.buffer_memory, "buffer.memory")):
            if size > limit:
                raise RecordTooLargeError(
                    f"a record for topic {topic} takes up to {size:,} bytes, and {name} is {limit:,}: send less in one record, "
                    f"or raise {name}"
                )


def check_topic_name(topic: object) -> None:
    """Raise if `topic` cannot be the name of a topic."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic's name is a str, not {type(topic).__name__}: {topic!r}")
    fault = topic_name_fault(topic)
    if fault is not None:
        raise InvalidTopicError(f"{fault}: choose another name")


def pack(headers: Headers) -> bytes:
    """Headers as a record has them."""
    if isinstance(headers, PackedHeaders):
        if headers.packed is None:
            headers.packed = pack_headers(tuple(headers))
        return headers.packed
    if isinstance(headers, Mapping):
        headers = headers.items()
    return pack_headers(headers) if headers else NO_HEADERS


def check_callback(name: str, given: object) -> None:
    """Raise if an argument that is called much later cannot be called."""
    if not callable(given):
        raise TypeError(f"{name} is called with metadata and error, and must be a callable, not {given!r}")


def checked_timestamp(timestamp: Any) -> int:
    """A record's timestamp, if it is one."""
    if not isinstance(timestamp, int) or isinstance(timestamp, bool):
        raise TypeError(f"a record's timestamp is an int of milliseconds since 1970, not {timestamp!r}")
    if not 0 <= timestamp <= 0x7FFFFFFFFFFFFFFF:
        raise ValueError(
            f"a record's timestamp is {timestamp}, and must be from 0 to 2^63 - 1: leave it out for the current time"
        )
    return timestamp


def checked_partition(partition: Any, topic: str) -> int:
    """A partition's number, if it can be one."""
    if not isinstance(partition, int) or isinstance(partition, bool):
        raise TypeError(f"a partition is an int, not {partition!r}")
    if partition < 0:
        raise ValueError(f"topic {topic} has no partition {partition}: partitions are numbered from 0")
    return partition
