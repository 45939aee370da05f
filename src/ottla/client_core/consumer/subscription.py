"""What a consumer reads: its subscription, its partitions, and where it is in each.

Thread rule: everything here belongs to the consumer's loop, except `PartitionState.position` and `consumed_bytes`. Those two
are written by the thread that takes records out of fetched answers, and by the loop only while that thread waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from ottla.client_core.consumer.settings import NO_RESET, Reset
from ottla.errors import IllegalStateError, KafkaError
from ottla.errors.texts import counted
from ottla.ids import ZERO_UUID, TopicPartition, Uuid

NO_EPOCH = -1


class Position(NamedTuple):
    """The next offset to read, and the leader epoch of the record before it (-1: not known)."""

    offset: int
    epoch: int = NO_EPOCH


class Phase(Enum):
    """What a partition needs before it can be fetched."""

    NEW = "new"
    """No position yet: the committed offset is looked for."""
    RESET = "reset"
    """No valid position: `reset` says where to start, and ListOffsets which offset that is."""
    VALIDATE = "validate"
    """The leader has changed: OffsetForLeaderEpoch says whether its log still holds the position."""
    FETCH = "fetch"
    FAILED = "failed"
    """`error` is raised by every poll until a seek."""


OFFSET_BYTES_GUESS = 1024
"""Bytes per offset before the first answer has come."""


class PartitionState:
    """Where the consumer is in one partition."""

    __slots__ = (
        "consumed_bytes",
        "end_offset",
        "error",
        "fetch_position",
        "generation",
        "is_in_flight",
        "is_paused",
        "is_strict",
        "last_stable_offset",
        "log_start_offset",
        "not_before_ms",
        "nothing_from",
        "offset_bytes",
        "phase",
        "position",
        "preferred_node",
        "preferred_until_ms",
        "received_bytes",
        "reset",
        "stale_since",
        "topic_id",
        "topic_partition",
        "until",
        "validated_epoch",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.topic_id: Uuid = ZERO_UUID
        """The id of the topic that the position belongs to."""
        self.phase = Phase.NEW
        self.position: Position | None = None
        """What the caller gets next."""
        self.fetch_position: Position | None = None
        """What is fetched next; between the two lies what is buffered."""
        self.generation = 0
        """Grows with every jump of the position: answers from before it are dropped."""
        self.reset: Reset = NO_RESET
        self.error: KafkaError | None = None
        self.is_paused = False
        self.is_strict = False
        """True: a position that is not valid is an error, whatever auto.offset.reset says. Readers of ranges need that."""
        self.until: int | None = None
        """The offset at which a range ends: nothing from there on is fetched. None: there is no end."""
        self.offset_bytes = OFFSET_BYTES_GUESS
        """Bytes that an offset takes, by the last answer. Sizes the requests of a range."""
        self.nothing_from = -1
        """The offset at which the last answer held no batch of any partition, else -1. Compaction can empty a tail."""
        self.is_in_flight = False
        """A request for the position (not a fetch) is under way."""
        self.not_before_ms = 0
        self.validated_epoch = NO_EPOCH
        """The leader epoch against which the position was validated."""
        self.stale_since = -1
        """How many metadata responses there were when the known leader was found older than the position; -1: it was not."""
        self.preferred_node = -1
        self.preferred_until_ms = 0
        self.end_offset: int | None = None
        """The high watermark of the last answer."""
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.received_bytes = 0
        self.consumed_bytes = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes of answers that were not taken yet."""
        return self.received_bytes - self.consumed_bytes

    def jump(self, position: Position, *, is_validated: bool = False) -> None:
        """Go on at `position`: what is buffered or under way is dropped."""
        self._drop_fetched()
        self.position = position
        self.fetch_position = position
        self.phase = Phase.FETCH
        self.validated_epoch = self.validated_epoch if is_validated else NO_EPOCH

    def start_reset(self, reset: Reset) -> None:
        """Look for a new position, where `reset` says."""
        self._drop_fetched()
        self.position = self.fetch_position = None
        self.reset = reset
        self.phase = Phase.RESET

    def end_range(self) -> None:
        """If a range was read here, maybe not to its end: go on without its limits."""
        if self.until is not None:
            self.until = None
            self.is_strict = self.is_paused = False

    def refetch(self) -> None:
        """Drop what is buffered and fetch it again from the position."""
        position = self.position
        self._drop_fetched()
        self.fetch_position = position

    def fail(self, error: KafkaError) -> None:
        """Raise `error` at every poll. The partition is not fetched until a seek."""
        self._drop_fetched()
        self.fetch_position = self.position
        self.error = error
        self.phase = Phase.FAILED

    def _drop_fetched(self) -> None:
        self.generation += 1
        self.received_bytes = self.consumed_bytes = 0
        self.is_in_flight = False
        self.not_before_ms = 0
        self.stale_since = -1
        self.preferred_node = -1
        self.error = None

    def __repr__(self) -> str:
        return f"PartitionState({self.topic_partition}, {self.phase.value}, position={self.position})"


class Mode(Enum):
    """How the consumer came to its partitions."""

    NONE = "none"
    ASSIGNED = "assign"
    SUBSCRIBED = "subscribe"


class Subscription:
    """The partitions of a consumer, chosen by itself (`assign`) or by its group (`subscribe`)."""

    def __init__(self) -> None:
        self.mode = Mode.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        self.partitions: dict[TopicPartition, PartitionState] = {}
        self.version = 0
        """Grows when partitions come or go."""

    # Which partitions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, chosen by the caller. Those read before keep their positions."""
        self._enter(Mode.ASSIGNED, "assign")
        self.set_partitions(partitions)

    def subscribe(self, topics: Iterable[str], pattern: re.Pattern[str] | None = None) -> None:
        """Read what the group assigns of these topics."""
        self._enter(Mode.SUBSCRIBED, "subscribe")
        self.topics = frozenset(topics)
        self.pattern = pattern

    def unsubscribe(self) -> None:
        """Read nothing."""
        self.mode = Mode.NONE
        self.topics, self.pattern = frozenset(), None
        self.set_partitions(())

    def set_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Have exactly these partitions. Those that stay keep their positions."""
        old = self.partitions
        self.partitions = {each: old.get(each) or PartitionState(each) for each in partitions}
        for gone in old.keys() - self.partitions.keys():
            old[gone].generation += 1
        self.version += 1

    def _enter(self, mode: Mode, call: str) -> None:
        if self.mode not in (Mode.NONE, mode):
            raise IllegalStateError(
                f"{call}() cannot be mixed with {self.mode.value}(): a consumer either chooses its partitions itself or gets "
                "them from its group. Call unsubscribe() first"
            )
        self.mode = mode

    # Where in them

    def state(self, partition: TopicPartition) -> PartitionState:
        """The state of an assigned partition; `IllegalStateError` if it is not assigned."""
        found = self.partitions.get(partition)
        if found is None:
            raise IllegalStateError(
                f"{partition} is not assigned to this consumer, which has {counted(len(self.partitions), 'partition')}: assign "
                "it first, or wait until poll() has given it the partition"
            )
        return found

    def errors(self) -> list[PartitionState]:
        """The partitions that cannot go on without a seek."""
        return [state for state in self.partitions.values() if state.error is not None]
