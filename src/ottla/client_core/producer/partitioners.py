"""Partitioners: which partition a record without an explicit one goes to.

Pure: randomness comes in as `random_below`. A partitioner keeps what it knows of a topic in that topic's `TopicState`. The
producer makes one when it first chooses for the topic, and updates it with the metadata.

`DefaultPartitioner` is Kafka's (KIP-794) for records without a key: which partition is next. How long records stay on it is
decided where they are added (`TopicBatches` in `records/kernel_accumulate.py`), as is the hash of keys. The next partition is
random among those with a leader. With partitioner.adaptive.partitioning.enable a partition is the likelier the shorter its
queue is, and with partitioner.availability.timeout.ms those of a node that takes no requests for so long are left out. The
producer calls:

    observe(topic, lengths, leaders)        before it chooses: how much waits for each partition
    next_partitions(topic, number)          the partitions that follow
    node_tried(node, now_ms, can_send)      in each round of sending: a node with batches to send was looked at

Threads: `node_tried` belongs to the event loop. The producer calls the others under its accumulator's lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import index
from typing import Any

from ottla.client_core.serializers import own_object
from ottla.errors import ConfigError

RandomBelow = Callable[[int], int]
"""A random number from 0 to below its argument."""

OwnPartitioner = Callable[[str, Any, bytes | None, Any, bytes | None, Sequence[int], Sequence[int]], int]
"""A user's own: (topic, key, key_bytes, value, value_bytes, partitions, available) → partition."""

NONE_YET = -1
PARTITIONERS = ("default", "roundrobin")


class TopicState:
    """What partitioners know of one topic."""

    __slots__ = ("available", "count", "name", "sums", "turn", "weighed")

    def __init__(self, name: str, count: int, available: Sequence[int]) -> None:
        self.name = name
        self.count = count
        """How many partitions the topic has, at least 1."""
        self.available = available
        """The partitions that have a leader."""
        self.weighed: Sequence[int] = ()
        """The partitions that `sums` weighs."""
        self.sums: list[int] | None = None
        """The running sums of their weights; None: choose evenly among those available."""
        self.turn = 0
        """How many records have been dealt out in turn."""

    def update(self, count: int, available: Sequence[int]) -> None:
        """Take over new metadata. A new number of partitions drops the weights; the next `observe` makes new ones."""
        if count != self.count:
            self.weighed, self.sums = (), None
        self.count = count
        self.available = available


class DefaultPartitioner:
    """Kafka's own: the next partition for records without a key."""

    def __init__(self, random_below: RandomBelow, *, is_adaptive: bool = True, availability_timeout_ms: int = 0) -> None:
        self._random_below = random_below
        self._is_adaptive = is_adaptive
        self._availability_timeout_ms = availability_timeout_ms
        self._tried_ms: dict[int, int] = {}
        """By node: when batches for it were last seen."""
        self._could_send_ms: dict[int, int] = {}
        """By node: when it last took a request."""

    def next_partitions(self, topic: TopicState, number: int = 1) -> list[int]:
        """Random partitions for records without a key: by weight, or evenly among those available, or among all."""
        sums = topic.sums
        among = topic.available or range(topic.count)
        limit = len(among) if sums is None else sums[-1]
        # One random number has them all as its digits to this base: a system call for each would cost ten times as much.
        digits = self._random_below(limit**number)
        found = []
        for _ in range(number):
            digits, digit = divmod(digits, limit)
            found.append(among[digit] if sums is None else topic.weighed[bisect_right(sums, digit)])
        return found

    def observe(self, topic: TopicState, lengths: Sequence[int], leaders: Sequence[int]) -> None:
        """Weigh the partitions by the lengths of their queues. `leaders` are their leaders' node ids, -1 for none.

        There are no weights before every partition has a queue: those without one would never be chosen.
        """
        if not self._is_adaptive or len(lengths) < topic.count:
            topic.weighed, topic.sums = (), None
            return
        weighed: Sequence[int] = range(len(lengths))
        shown = lengths
        if self._availability_timeout_ms > 0 or min(leaders) < 0:
            weighed = [
                partition
                for partition, leader in enumerate(leaders)
                if leader >= 0 and not (lengths[partition] and self._is_slow(leader))
            ]
            shown = [lengths[partition] for partition in weighed]
        topic.weighed, topic.sums = weighed, running_sums(shown, len(lengths))

    def node_tried(self, node: int, now_ms: int, can_send: bool) -> None:
        """Note that there are batches for `node`, and whether it takes a request now."""
        if self._availability_timeout_ms <= 0:
            return
        if can_send or node not in self._could_send_ms:
            self._could_send_ms[node] = now_ms  # first: another thread may compare the two
        self._tried_ms[node] = now_ms

    def _is_slow(self, node: int) -> bool:
        """Whether a node has had batches to take, and took none, for longer than partitioner.availability.timeout.ms."""
        if node not in self._tried_ms:
            return False
        return self._tried_ms[node] - self._could_send_ms[node] > self._availability_timeout_ms


class RoundRobinPartitioner:
    """Deals records out in turn to the partitions that are available and ignores keys, as Kafka's class of that name does."""

    def choose(self, topic: TopicState) -> int:
        """The next partition in turn."""
        turn = topic.turn
        topic.turn += 1
        if topic.available:
            return topic.available[turn % len(topic.available)]
        return turn % topic.count


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
    is_adaptive: bool,
    availability_timeout_ms: int,
) -> DefaultPartitioner | RoundRobinPartitioner | CallablePartitioner:
    """The partitioner for a setting: one of `PARTITIONERS`, a callable, or an object (or a class) with a `partition` method."""
    if chosen is None or chosen == "default":
        return DefaultPartitioner(random_below, is_adaptive=is_adaptive, availability_timeout_ms=availability_timeout_ms)
    if chosen == "roundrobin":
        return RoundRobinPartitioner()

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
