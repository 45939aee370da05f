"""One partition on this node: its leadership, its log, and the requests parked on it.

Owns the high watermark and the lists of parked requests. The log belongs to `ottla.log`; the metadata decides who leads
(`adopt`). Everything runs on the node's event loop as plain calls; only a flush before an acknowledgement is a task.

The high watermark is the lowest log end offset of the in-sync replicas: on one node, the log's own. It does not advance while
the partition has fewer in-sync replicas than min.insync.replicas, nor over records that flush.messages wants flushed first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from ottla.broker.partitions.kernels import PartitionTail
from ottla.env import OffLoop, Steps
from ottla.errors import BrokenInvariant, CorruptFile, KafkaError, LogDirectoryFailed, OttlaError, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import INTERNAL_TOPICS, TopicPartition, Uuid
from ottla.log.append import AppendInfo, check_produced
from ottla.log.origin import AppendOrigin
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation, ReadInfo
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.records.effort import FULL, SMALL_BYTES, UNLIMITED, Effort, TooExpensive
from ottla.records.produced.validate import ZSTD_REQUEST_VERSION_MIN

if TYPE_CHECKING:
    from ottla.broker.purgatory.delayed_fetch import DelayedFetch
    from ottla.log.producers.verification import VerificationState
    from ottla.records.kernels import CheckedBatch
    from ottla.records.produced.validate import ValidBatch

ALL_IN_SYNC = -1
"""acks=all, as the protocol writes it."""


class AckWaiter(Protocol):
    """A request that waits for the high watermark or the disk."""

    def settle(self, partition: Partition) -> bool:
        """The partition has changed: True if the wait is over, with success or failure."""
        ...


class PartitionOwner(Protocol):
    """What a partition calls on the object that holds it (`Partitions`)."""

    def has_news(self, partition: Partition) -> None:
        """Fetches watch the partition, and there is more to read."""
        ...

    def has_changed(self, partition: Partition) -> None:
        """Fetches watch the partition, and may have to be refused now."""
        ...

    def lose_directory(self, failure: LogDirectoryFailed, log: PartitionLog) -> None:
        """The partition's disk has failed."""
        ...

    def upkeep_is_due(self) -> None:
        """The log has work for the background."""
        ...

    def broken(self, failure: BaseException) -> None:
        """An invariant is broken, and there is no request to fail: the node has to stop."""
        ...


class Partition(PartitionTail):
    """One partition. `Partitions` creates it, applies the metadata to it, and removes it."""

    __slots__ = (
        "_failure",
        "_flush_goal",
        "index",
        "leader",
        "node_id",
        "partition_epoch",
        "replicas",
        "topic",
        "topic_id",
    )

    _owner: PartitionOwner
    ack_waits: dict[AckWaiter, None]
    flushing: asyncio.Task[None] | None
    """The flush under way that acknowledgements wait for."""
    follower_ends: dict[int, int]
    """Replica → its log end offset, as it last reported it."""
    is_leading: bool
    """Whether this node leads the partition and can use its log. Appends and reads check nothing else."""
    log: PartitionLog
    min_isr: int
    """min.insync.replicas, or the number of replicas if that is less."""
    unread_bytes: int
    """Upper bound of the bytes appended since the watching fetches were last tried."""
    watches: dict[DelayedFetch, None]
    """Parked fetches that wait for more records; a dict, for its order."""

    def __init__(self, owner: PartitionOwner, node_id: int, topic_id: Uuid, log: PartitionLog) -> None:
        self._owner = owner
        self._failure: tuple[int, str] | None = None
        self._others_in_sync = ()
        self._flush_goal = self.asked_by = 0
        self.node_id = node_id
        self.topic, self.index = log.partition
        self.topic_id = topic_id
        self.is_internal = self.topic in INTERNAL_TOPICS
        self.log = log
        self.leader = NO_LEADER
        self.leader_epoch = self.partition_epoch = -1
        self.is_leading = False
        self.replicas: tuple[int, ...] = ()
        self.isr = ()
        self.min_isr = 1
        self.follower_ends = {}
        self.flushing = None
        self.ack_waits = {}
        self.watches = {}
        self.unread_bytes = 0

    def __repr__(self) -> str:
        role = "leading" if self.is_leading else f"led by {self.leader}"
        return f"Partition({self.topic}-{self.index}, {role}, epoch={self.leader_epoch}, isr={self.isr}, log={self.log!r})"

    @property
    def name(self) -> TopicPartition:
        return self.log.partition

    # Following the metadata

    def adopt(self, state: PartitionState) -> None:
        """Apply the partition's newest state in the metadata."""
        is_new_epoch = state.leader_epoch > self.leader_epoch
        was_leading = self.is_leading
        self.replicas, self.isr = state.replicas, state.isr
        self.leader, self.leader_epoch, self.partition_epoch = state.leader, state.leader_epoch, state.partition_epoch
        self._others_in_sync = tuple(replica for replica in state.isr if replica != self.node_id)
        self.is_leading = state.leader == self.node_id and self._failure is None
        if self.is_leading and is_new_epoch:
            # Even before the epoch's first record: replicas that ask where an epoch ended must learn of this one.
            self.log.assign_epoch(self.leader_epoch, self.log.log_end_offset)
            self.follower_ends.clear()
        self.follow_config()
        if is_new_epoch or was_leading != self.is_leading:
            self._tell_of_change()

    def follow_config(self) -> None:
        """The log's settings or the replicas have changed."""
        self.min_isr = min(self.log.config.min_insync_replicas, len(self.replicas))
        self.advance()

    def fail(self, code: int, text: str) -> None:
        """The partition is offline or deleted: refuse it from now on, parked requests included."""
        self._failure = (code, text)
        self.is_leading = False
        self._tell_of_change()

    def _tell_of_change(self) -> None:
        self.settle_acks()
        if self.watches:
            self._owner.has_changed(self)

    # Leadership checks

    def check_leading(self, leader_epoch: int = -1) -> None:
        """Raise a `KafkaError` unless this node leads the partition, and in `leader_epoch` unless that is -1."""
        if leader_epoch != -1 and leader_epoch != self.leader_epoch and self._failure is None:
            if leader_epoch < self.leader_epoch:
                raise KafkaError(
                    ErrorCode.FENCED_LEADER_EPOCH,
                    f"leader epoch {leader_epoch} of {self.name} is over, it is {self.leader_epoch} now: ask for new metadata",
                )
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"leader epoch {leader_epoch} of {self.name} is not known here yet, where it is {self.leader_epoch}: try again",
            )
        if not self.is_leading:
            raise self.refusal()

    def refusal(self) -> KafkaError:
        """Why this node does not serve the partition. New each time: an exception that is raised again grows its traceback."""
        if self._failure is not None:
            return KafkaError(*self._failure)
        who = "has no leader now" if self.leader == NO_LEADER else f"is led by node {self.leader}, not by node {self.node_id}"
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} {who}: ask for new metadata and go there")

    def refused_by(self, failure: OttlaError) -> KafkaError:
        """The error for the client when the log has raised `failure`. A failed disk's directory is also taken offline."""
        failure.__traceback__ = None  # a log raises the same exception object again; its traceback would grow
        if isinstance(failure, KafkaError):
            return failure
        if isinstance(failure, BrokenInvariant):
            raise failure
        if isinstance(failure, LogDirectoryFailed):
            self._owner.lose_directory(failure, self.log)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is offline: {failure.brief}")
        if isinstance(failure, OutOfDescriptors):
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure))
        if isinstance(failure, CorruptFile):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.name} cannot be read: {failure}")
        # The log was closed, or taken out of its directory: another broker has the partition, or will soon.
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} is not available now: {failure}")

    # Appending

    def append(
        self,
        records: bytearray | memoryview,
        acks: int,
        request_version: int = ZSTD_REQUEST_VERSION_MIN,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        verified_by: VerificationState | None = None,
        transaction_version: int = 0,
        checked: CheckedBatch | None = None,
        effort: Effort = FULL,
        valid: ValidBatch | None = None,
    ) -> AppendInfo:
        """Append one batch as the leader. Raises a `KafkaError` for the client if the batch is refused.

        `verified_by` is the verification that a transaction's first batch needs, `transaction_version` that of an end marker,
        `checked` what an earlier check of the same batch found out. `TooExpensive`, with nothing changed, if the check of the
        batch takes more than `effort`; `check_off_loop` does it elsewhere, and its result is passed as `valid`.
        The batch may be acknowledged once `is_acknowledged` is true; until then an `AckWait` waits for it.
        """
        if not self.is_leading:
            raise self.refusal()
        if acks == ALL_IN_SYNC and len(self.isr) < self.min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.name} has {counted(len(self.isr), 'replica')} in sync, of {self.min_isr} that it needs for acks=all: "
                "bring back the others, or lower min.insync.replicas",
            )
        try:
            info = self.log.append_as_leader(
                records,
                self.leader_epoch,
                origin,
                transaction_version=transaction_version,
                verified_by=verified_by,
                request_version=request_version,
                checked=checked,
                effort=effort,
                valid=valid,
            )
        except OttlaError as failure:
            raise self.refused_by(failure) from None
        if info.flush_needed:
            self._flush_up_to(info.last_offset + 1)
        self.has_grown(info.size_bytes)
        return info

    def check_off_loop(self, records: bytearray | memoryview, request_version: int) -> Steps[ValidBatch]:
        """Check a client's batch in a worker thread: first with little memory, then with as much as it may take."""
        is_wanted = True
        now_s = self.log.clock.monotonic_s
        small = Effort(SMALL_BYTES, is_wanted=lambda: is_wanted, now_s=now_s)
        full = Effort(UNLIMITED, is_wanted=lambda: is_wanted, now_s=now_s)
        try:
            try:
                valid: ValidBatch = yield OffLoop(check_produced(self.log, records, request_version, small), 2 * SMALL_BYTES)
            except TooExpensive:
                valid = yield OffLoop(check_produced(self.log, records, request_version, full), UNLIMITED)
        finally:
            is_wanted = False  # the call may still run if the connection has gone
        return valid

    def is_acknowledged(self, info: AppendInfo, acks: int) -> bool:
        """Whether an append has reached what `acks` and flush.messages ask for."""
        if acks == ALL_IN_SYNC:
            return self.log.high_watermark > info.last_offset
        return not info.flush_needed or self.log.recovery_point > info.last_offset

    def take_unread_bytes(self) -> int:
        """Return `unread_bytes` for the watching fetches. Not reset while bytes above the high watermark are among them."""
        size_bytes = self.unread_bytes
        if self.log.high_watermark >= self.log.log_end_offset:
            self.unread_bytes = 0
        return size_bytes

    def follower_is_at(self, replica: int, end_offset: int) -> None:
        """Replica `replica` has the log up to `end_offset`."""
        self.follower_ends[replica] = end_offset
        self.advance()

    def settle_acks(self) -> None:
        """Settle the waits that have been reached, and those that can no longer be."""
        for wait in list(self.ack_waits):
            if wait.settle(self):
                self.ack_waits.pop(wait, None)

    # Flushing before an acknowledgement

    def _flush_up_to(self, offset: int) -> None:
        self._flush_goal = max(self._flush_goal, offset)
        if self.flushing is None:
            self.flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """Flush up to `_flush_goal`. Appends that arrive during a flush share the next one."""
        try:
            while min(self._flush_goal, self.log.log_end_offset) > self.log.recovery_point:
                await self.log.flush()
                self.advance()
                self.settle_acks()
            self.flushing = None
            self.advance()
        except BrokenInvariant as failure:
            self._owner.broken(failure)
        except OttlaError as failure:
            self.refused_by(failure)  # the high watermark stays where it is: the rest is not durable
        finally:
            self.flushing = None
        self.settle_acks()

    # Reading

    def read(self, offset: int, max_bytes: int, isolation: Isolation, min_one_batch: bool = True) -> ReadInfo:
        """Call `PartitionLog.read`; every failure becomes a `KafkaError`."""
        try:
            return self.log.read(offset, max_bytes, isolation, min_one_batch)
        except OttlaError as failure:
            raise self.refused_by(failure) from None

    def diverging_epoch(self, epoch: int, offset: int) -> tuple[int, int] | None:
        """Where the log of a reader, whose last record before `offset` is of `epoch`, diverges from this log; None: nowhere.

        Returns (epoch, end offset) up to which both may agree. Raises OFFSET_OUT_OF_RANGE if that is unknown.
        """
        found = self.log.end_offset_for_epoch(epoch)
        if found is None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} has no epoch {epoch}, in which the reader says offset {offset - 1} was written: reset the offset",
            )
        if offset < self.log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.name} is not there any more: the log begins at {self.log.log_start_offset}",
            )
        return found if found[0] < epoch or found[1] < offset else None
