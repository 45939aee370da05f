"""One partition as this node holds it: who leads it, its log, and who waits for news of it.

Owns the high watermark and the waiting lists. The log is `ottla.log`'s; who leads is the cluster's to say (`adopt`). Everything
runs on the node's event loop as plain calls; only a flush that must come before an acknowledgement is a task.

The high watermark is how far every replica in sync has the log: on one node, its end. It stands still while the partition has
fewer replicas in sync than it must, and while records of which flush.messages says that they be flushed first are not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from ottla.broker.partitions.kernels import PartitionTail
from ottla.errors import BrokenInvariant, CorruptFile, KafkaError, LogDirectoryFailed, OttlaError, OutOfDescriptors
from ottla.errors.codes import ErrorCode
from ottla.ids import INTERNAL_TOPICS, TopicPartition, Uuid
from ottla.log.append import AppendInfo
from ottla.log.origin import AppendOrigin
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation, ReadInfo
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.records.validate import ZSTD_REQUEST_VERSION_MIN

if TYPE_CHECKING:
    from ottla.broker.purgatory.delayed_fetch import DelayedFetch
    from ottla.log.producers.verification import VerificationState
    from ottla.records.kernels import CheckedBatch

ALL_IN_SYNC = -1
"""acks=all, as the protocol writes it."""


class AckWaiter(Protocol):
    """Whoever waits for the high watermark or the disk."""

    def settle(self, partition: Partition) -> bool:
        """Something has changed: True if the waiting is over, well or badly."""
        ...


class PartitionOwner(Protocol):
    """What a partition tells whoever holds it."""

    def has_news(self, partition: Partition) -> None:
        """Somebody watches the partition, and there is more to read."""
        ...

    def has_changed(self, partition: Partition) -> None:
        """Somebody watches the partition, and may have to be refused now."""
        ...

    def lose_directory(self, failure: LogDirectoryFailed, log: PartitionLog) -> None:
        """The partition's disk has failed."""
        ...

    def upkeep_is_due(self) -> None:
        """The log has work for the background."""
        ...

    def broken(self, failure: BaseException) -> None:
        """Something that cannot happen has happened where nobody waits who could be told."""
        ...


class Partition(PartitionTail):
    """One partition. `Partitions` makes it, has it follow the cluster, and takes it away."""

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
    """How far the other replicas have the log, by their word."""
    is_leading: bool
    """Whether this node leads the partition and can use its log: appending and reading need no other question."""
    log: PartitionLog
    min_isr: int
    """min.insync.replicas, or the number of replicas if that is less."""
    unread_bytes: int
    """How many bytes were appended, at most, of which those who watch have not been told."""
    watches: dict[DelayedFetch, None]
    """Fetches that wait for more records; a dict, for its order."""

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

    # What the cluster says

    def adopt(self, state: PartitionState) -> None:
        """Follow the cluster's newest word on this partition."""
        is_new_epoch = state.leader_epoch > self.leader_epoch
        was_leading = self.is_leading
        self.replicas, self.isr = state.replicas, state.isr
        self.leader, self.leader_epoch, self.partition_epoch = state.leader, state.leader_epoch, state.partition_epoch
        self._others_in_sync = tuple(replica for replica in state.isr if replica != self.node_id)
        self.is_leading = state.leader == self.node_id and self._failure is None
        if self.is_leading and is_new_epoch:
            # Also before its first record: replicas that ask where an epoch ended must be told of this one.
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
        """The partition cannot be used any more: offline, or gone. Whoever waits is told so."""
        self._failure = (code, text)
        self.is_leading = False
        self._tell_of_change()

    def _tell_of_change(self) -> None:
        self.settle_acks()
        if self.watches:
            self._owner.has_changed(self)

    # May I?

    def check_leading(self, leader_epoch: int = -1) -> None:
        """`KafkaError` unless this node leads the partition, in `leader_epoch` if the asker names one (not -1)."""
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
        """Why the partition is not to be had from this node. Made anew each time: a raised exception grows."""
        if self._failure is not None:
            return KafkaError(*self._failure)
        who = "has no leader now" if self.leader == NO_LEADER else f"is led by node {self.leader}, not by node {self.node_id}"
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} {who}: ask for new metadata and go there")

    def refused_by(self, failure: OttlaError) -> KafkaError:
        """What the peer is told when the log has raised `failure`. For a failed disk, also does what has to be done."""
        failure.__traceback__ = None  # logs raise one exception again and again; it would grow
        if isinstance(failure, KafkaError):
            return failure
        if isinstance(failure, BrokenInvariant):
            raise failure
        if isinstance(failure, LogDirectoryFailed):
            self._owner.lose_directory(failure, self.log)
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is offline: {failure}")
        if isinstance(failure, OutOfDescriptors):
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure))
        if isinstance(failure, CorruptFile):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.name} cannot be read: {failure}")
        # The log was closed, or taken out of its directory: somebody else has it, or will soon.
        return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self.name} is not to be had now: {failure}")

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
    ) -> AppendInfo:
        """Append one batch as the leader. `KafkaError` for whoever sent it, if it is refused.

        `verified_by` is the proof that a transaction's first batch needs, `transaction_version` that of an end marker,
        `checked` what an earlier check of the same batch found out.
        Acknowledge it once `is_acknowledged` says so; where it does not at once, `AckWait` waits for it.
        """
        if not self.is_leading:
            raise self.refusal()
        if acks == ALL_IN_SYNC and len(self.isr) < self.min_isr:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{self.name} has {len(self.isr)} replicas in sync, of {self.min_isr} that it needs for acks=all: bring back "
                "the others, or lower min.insync.replicas",
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
            )
        except OttlaError as failure:
            raise self.refused_by(failure) from None
        if info.flush_needed:
            self._flush_up_to(info.last_offset + 1)
        self.has_grown(info.size_bytes)
        return info

    def is_acknowledged(self, info: AppendInfo, acks: int) -> bool:
        """Whether an append is as safe as its producer asked."""
        if acks == ALL_IN_SYNC:
            return self.log.high_watermark > info.last_offset
        return not info.flush_needed or self.log.recovery_point > info.last_offset

    def take_unread_bytes(self) -> int:
        """`unread_bytes`, to be told to those who watch. What is above the high watermark is told again later."""
        size_bytes = self.unread_bytes
        if self.log.high_watermark >= self.log.log_end_offset:
            self.unread_bytes = 0
        return size_bytes

    def follower_is_at(self, replica: int, end_offset: int) -> None:
        """Another replica has the log up to `end_offset`."""
        self.follower_ends[replica] = end_offset
        self.advance()

    def settle_acks(self) -> None:
        """Answer the producers that have waited for what is there now, or who wait in vain."""
        for wait in list(self.ack_waits):
            if wait.settle(self):
                self.ack_waits.pop(wait, None)

    # Flushing before an acknowledgement

    def _flush_up_to(self, offset: int) -> None:
        self._flush_goal = max(self._flush_goal, offset)
        if self.flushing is None:
            self.flushing = asyncio.get_running_loop().create_task(self._flush())

    async def _flush(self) -> None:
        """Flush until nothing is left that must be; appends that come meanwhile share the next flush."""
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
            self.refused_by(failure)  # and the high watermark stays where it is: what was not flushed is not safe
        finally:
            self.flushing = None
        self.settle_acks()

    # Reading

    def read(self, offset: int, max_bytes: int, isolation: Isolation, min_one_batch: bool = True) -> ReadInfo:
        """As `PartitionLog.read`; every refusal is a `KafkaError`."""
        try:
            return self.log.read(offset, max_bytes, isolation, min_one_batch)
        except OttlaError as failure:
            raise self.refused_by(failure) from None

    def diverging_epoch(self, epoch: int, offset: int) -> tuple[int, int] | None:
        """Where the log of a reader that has everything up to `offset`, lastly of `epoch`, parts from this one, if it does.

        (epoch, end offset) up to which both may agree. `KafkaError` OFFSET_OUT_OF_RANGE where that cannot be told.
        """
        found = self.log.end_offset_for_epoch(epoch)
        if found is None:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.name} knows nothing of epoch {epoch}, in which offset {offset - 1} is said to be written: begin again",
            )
        if offset < self.log.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.name} is not there any more: the log begins at {self.log.log_start_offset}",
            )
        return found if found[0] < epoch or found[1] < offset else None
