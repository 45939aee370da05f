"""Partitioners: which partition a record without an explicit one goes to.

Pure: randomness comes in as `random_below`. A partitioner keeps what it knows of a topic in that topic's `TopicState`. The
producer makes one when it learns of the topic, and updates it with the metadata. The producer calls:

    choose(topic, key, size)                the partition of a record; `size` is how many bytes it takes in its batch
    batch_ended(topic, partition, size)     the open batch of a partition takes no more records; where the next one goes
    observe(topic, queues)                  before each round of sending: how many batches wait for each partition
    node_tried(node, now_ms, can_send)      a node with batches to send was looked at

`DefaultPartitioner` is Kafka's: keys by their hash over all partitions, available or not, and records without a key to a sticky
partition (KIP-480), which changes after batch.size bytes (KIP-794). The change waits until a batch ends, so that it leaves no
small batch behind, but not beyond twice batch.size. The next partition is random; with partitioner.adaptive.partitioning.enable
a partition is the likelier the fewer batches wait for it, and with partitioner.availability.timeout.ms those of a node that
takes no requests for so long are left out.

A producer whose kernel hashes keys and counts bytes itself needs only `next_partition` and `observe` of it.

Threads: the producer calls under its accumulator's lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import index
from typing import Any, Protocol

from ottla.errors import ConfigError
from ottla.records.partitioning import partition_of_key

RandomBelow = Callable[[int], int]
"""A random number from 0 to below its argument."""

OwnPartitioner = Callable[[str, Any, bytes | None, Any, bytes | None, Sequence[int], Sequence[int]], int]
"""A user's own: (topic, key, key_bytes, value, value_bytes, partitions, available) → partition."""

NONE_YET = -1
PARTITIONERS = ("default", "roundrobin")


class TopicState:
    """What partitioners know of one topic."""

    __slots__ = ("available", "count", "name", "produced_bytes", "sticky", "sums", "turn", "weighed")

    def __init__(self, name: str, count: int, available: Sequence[int]) -> None:
        self.name = name
        self.count = count
        """How many partitions the topic has, at least 1."""
        self.available = available
        """The partitions that have a leader."""
        self.sticky = NONE_YET
        """Where records without a key go now."""
        self.produced_bytes = 0
        """How many bytes have gone there since it was chosen."""
        self.weighed: list[int] = []
        """The partitions that `sums` weighs."""
        self.sums: list[int] | None = None
        """The running sums of their weights; None: choose evenly among those available."""
        self.turn = 0
        """How many records have been dealt out in turn."""

    def update(self, count: int, available: Sequence[int]) -> None:
        """Take over new metadata. A new number of partitions drops the weights; the next `observe` makes new ones."""
        if count != self.count:
            self.weighed, self.sums = [], None
        if self.sticky >= count:
            self.sticky = NONE_YET
        self.count = count
        self.available = available


class Partitioner(Protocol):
    """What the producer calls; see the head of this file."""

    def choose(self, topic: TopicState, key: bytes | None, size: int) -> int:
        """The partition of a record."""
        ...

    def batch_ended(self, topic: TopicState, partition: int, size: int = 0) -> int:
        """Where a record of `size` bytes goes that found the batch full; 0: no record waits."""
        ...

    def observe(self, topic: TopicState, queues: Iterable[tuple[int, int, int]]) -> None:
        """Weigh the partitions by their queues: (partition, leader or -1, how many batches wait)."""
        ...

    def node_tried(self, node: int, now_ms: int, can_send: bool) -> None:
        """Note that there are batches for `node`, and whether it takes a request now."""
        ...


class DefaultPartitioner:
    """Kafka's own: keys by their hash, records without a key to a sticky partition that adapts to the load."""

    def __init__(
        self,
        random_below: RandomBelow,
        *,
        batch_size: int = 16_384,
        is_adaptive: bool = True,
        availability_timeout_ms: int = 0,
        ignores_keys: bool = False,
    ) -> None:
        self._random_below = random_below
        self._batch_size = max(1, batch_size)  # 0 switches batching off: every record then moves on
        self._is_adaptive = is_adaptive
        self._availability_timeout_ms = availability_timeout_ms
        self._ignores_keys = ignores_keys
        self._tried_ms: dict[int, int] = {}
        """By node: when batches for it were last seen."""
        self._could_send_ms: dict[int, int] = {}
        """By node: when it last took a request."""

    def choose(self, topic: TopicState, key: bytes | None, size: int) -> int:
        """The partition of a record, whose `size` counts for the sticky one if it has no key."""
        if key is not None and not self._ignores_keys:
            return partition_of_key(key, topic.count)
        if topic.sticky < 0 or topic.produced_bytes >= 2 * self._batch_size:
            self._move_on(topic)
        topic.produced_bytes += size
        return topic.sticky

    def batch_ended(self, topic: TopicState, partition: int, size: int = 0) -> int:
        """Move on if the sticky partition has had its share; returns where the record of `size` bytes goes that had no room.

        `choose` has counted that record already, so that a share is reached by the record that does not fit.
        """
        if partition != topic.sticky or topic.produced_bytes < self._batch_size:
            return partition
        self._move_on(topic)
        topic.produced_bytes = size
        return topic.sticky

    def next_partition(self, topic: TopicState) -> int:
        """A random partition for records without a key: by weight, or evenly among those available, or among all."""
        if topic.sums is not None:
            return topic.weighed[bisect_right(topic.sums, self._random_below(topic.sums[-1]))]
        if topic.available:
            return topic.available[self._random_below(len(topic.available))]
        return self._random_below(topic.count)

    def observe(self, topic: TopicState, queues: Iterable[tuple[int, int, int]]) -> None:
        """Weigh the partitions by their queues: (partition, leader or -1, how many batches wait).

        There are no weights before every partition has a queue: those without one would never be chosen.
        """
        if not self._is_adaptive:
            return
        seen = 0
        partitions: list[int] = []
        lengths: list[int] = []
        for partition, leader, length in queues:
            seen += 1
            if leader >= 0 and not (length and self._is_slow(leader)):
                partitions.append(partition)
                lengths.append(length)
        if seen < topic.count:
            topic.weighed, topic.sums = [], None
            return
        topic.weighed, topic.sums = partitions, running_sums(lengths, seen)

    def node_tried(self, node: int, now_ms: int, can_send: bool) -> None:
        """Note that there are batches for `node`, and whether it takes a request now."""
        if self._availability_timeout_ms <= 0:
            return
        self._tried_ms[node] = now_ms
        if can_send or node not in self._could_send_ms:
            self._could_send_ms[node] = now_ms

    def _is_slow(self, node: int) -> bool:
        """Whether a node has had batches to take, and took none, for longer than partitioner.availability.timeout.ms."""
        if node not in self._tried_ms:
            return False
        return self._tried_ms[node] - self._could_send_ms[node] > self._availability_timeout_ms

    def _move_on(self, topic: TopicState) -> None:
        topic.sticky = self.next_partition(topic)
        topic.produced_bytes = 0


class RoundRobinPartitioner:
    """Deals records out in turn to the partitions that are available and ignores keys, as Kafka's class of that name does."""

    def choose(self, topic: TopicState, key: bytes | None, size: int) -> int:
        """The next partition in turn."""
        turn = topic.turn
        topic.turn += 1
        if topic.available:
            return topic.available[turn % len(topic.available)]
        return turn % topic.count

    def batch_ended(self, topic: TopicState, partition: int, size: int = 0) -> int:
        """Records stay where they were dealt to."""
        return partition

    def observe(self, topic: TopicState, queues: Iterable[tuple[int, int, int]]) -> None:
        """Queues change nothing."""

    def node_tried(self, node: int, now_ms: int, can_send: bool) -> None:
        """Slow nodes change nothing."""


class CallablePartitioner:
    """A user's own callable, with its answer checked. What it raises reaches the caller of `send` unchanged."""

    def __init__(self, own: OwnPartitioner) -> None:
        self._own = own

    def choose_for(self, topic: TopicState, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None) -> int:
        """The partition of a record with this key and value, before and after they were serialized."""
        chosen = self._own(topic.name, key, key_bytes, value, value_bytes, range(topic.count), topic.available)
        try:
            partition = index(chosen)  # numbers of other libraries too
        except TypeError:
            partition = NONE_YET
        if not 0 <= partition < topic.count:
            raise ConfigError(
                f"partitioner={self._own!r} returned {chosen!r} for topic {topic.name}, which has {topic.count} partitions; "
                "it must return one of the numbers in its argument `partitions`"
            )
        return partition


def running_sums(lengths: Sequence[int], count: int) -> list[int] | None:
    """The running sums of weights for queues of these lengths: the longest weighs 1, one that is shorter by n weighs 1 + n.

    `count` is how many partitions there are, available or not; `lengths` has the available ones. None where weights change
    nothing or there is nothing to weigh: fewer than two partitions, none available, or all available with the same length.
    """
    if not lengths or count < 2:
        return None
    longest = max(lengths)
    if len(lengths) == count and min(lengths) == longest:
        return None
    return list(accumulate(longest + 1 - length for length in lengths))


def resolve_partitioner(
    chosen: object,
    random_below: RandomBelow,
    *,
    batch_size: int,
    is_adaptive: bool,
    availability_timeout_ms: int,
    ignores_keys: bool,
) -> DefaultPartitioner | RoundRobinPartitioner | CallablePartitioner:
    """The partitioner for a setting: one of `PARTITIONERS`, a callable, or an object (or a class) with a `partition` method."""
    if chosen is None or chosen == "default":
        return DefaultPartitioner(
            random_below,
            batch_size=batch_size,
            is_adaptive=is_adaptive,
            availability_timeout_ms=availability_timeout_ms,
            ignores_keys=ignores_keys,
        )
    if chosen == "roundrobin":
        return RoundRobinPartitioner()
    from ottla.client_core.serializers import own_object  # late: only a user's own needs it

    own = own_object(chosen, "partition", "partitioner")
    call: Any = getattr(own, "partition", own)
    if isinstance(chosen, str) or not callable(call):
        raise ConfigError(f"partitioner={chosen!r}: use {' or '.join(PARTITIONERS)}, or pass a callable")
    _check_arguments(call, chosen)
    return CallablePartitioner(call)


def _check_arguments(call: Callable[..., Any], chosen: object) -> None:
    """Refuse a callable that cannot be called with seven arguments, when the client is made and not at the first record."""
    import inspect  # late: it is slow to import, and few clients bring their own partitioner

    try:
        inspect.signature(call).bind(*[None] * 7)
    except ValueError:
        return  # a C function without a signature
    except TypeError as problem:
        raise ConfigError(
            f"partitioner={chosen!r} is called with (topic, key, key_bytes, value, value_bytes, partitions, available), which "
            f"it does not take: {problem}"
        ) from problem
