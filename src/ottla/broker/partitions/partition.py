"""One partition on this node: its leadership, its log, and the requests parked on it.

Owns the high watermark and the lists of parked requests. The metadata decides who leads (`adopt`), `in_sync.py` who is in sync.
Everything runs on the node's event loop as plain calls; only a flush before an acknowledgement is a task.

The high watermark is the lowest log end offset of the in-sync replicas: without other replicas, the log's own. It does not
advance while the partition has fewer in-sync replicas than min.insync.replicas, nor over records that flush.messages wants
flushed first. A follower takes it over from its leader, and never lowers it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from ottla.broker.background import watched
from ottla.broker.partitions.in_sync import Change, InSyncReplicas
from ottla.broker.partitions.kernels import PartitionTail
from ottla.env import Buffer, OffLoop, Steps
from ottla.errors import BrokenInvariant, CorruptFile, KafkaError, LogDirectoryFailed, OttlaError, OutOfDescriptors, drop_frames
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import INTERNAL_TOPICS, TopicPartition, Uuid
from ottla.log.append import AppendInfo, check_produced
from ottla.log.partition_log import PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.read import Isolation, ReadInfo
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.records.effort import FULL, SMALL_BYTES, UNLIMITED, Effort, TooExpensive
from ottla.records.produced.validate import ZSTD_REQUEST_VERSION_MIN

if TYPE_CHECKING:
    from ottla.broker.purgatory.delayed_fetch import DelayedFetch
    from ottla.broker.replication.follower_sessions import FollowerWatch
    from ottla.errors import LogDirectoryFailed
    from ottla.log.producers.append_checks import VerificationState
    from ottla.records.kernels import CheckedBatch
    from ottla.records.produced.validate import ValidBatch


ALL_IN_SYNC = -1
"""acks=all, as the protocol writes it."""


class Partition(PartitionTail):
    """One partition. `Partitions` creates it, applies the metadata to it, and removes it."""

    __slots__ = (
        "_failure",
        "_flush_goal",
        "_settling",
        "fetched_bytes",
        "fetches",
        "in_sync",
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
    follower_watches: dict[FollowerWatch, None]
    """Followers' sessions with this partition, and parked fetches of followers without one. They wait for the log to grow."""
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
        self._settling = Settling()
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
        self.in_sync: InSyncReplicas | None = None
        """The other replicas; None unless this node leads and there are others."""
        self.follower_ends, self.follower_watches = {}, {}
        self.flushing = None
        self.ack_waits, self.watches = {}, {}
        self.unread_bytes = 0
        self.fetches = self.fetched_bytes = 0
        """Reads by consumers that found records, and their bytes, since the partition was opened here."""

    def __repr__(self) -> str:
        role = "leading" if self.is_leading else f"led by {self.leader}"
        return f"Partition({self.topic}-{self.index}, {role}, epoch={self.leader_epoch}, isr={self.isr}, log={self.log!r})"

    @property
    def name(self) -> TopicPartition:
        return self.log.partition

    # Following the metadata

    def adopt(self, state: PartitionState, may_lead: bool = True) -> None:
        """Apply the partition's state in the metadata, unless it is known already: the controller may have answered first.

        Without `may_lead` this process is not registered yet: a state that names its node as leader is about an earlier one.
        """
        if state.partition_epoch <= self.partition_epoch:
            return
        is_new_epoch = state.leader_epoch > self.leader_epoch
        was_leading = self.is_leading
        self.replicas, self.isr = state.replicas, state.isr
        self.leader, self.leader_epoch, self.partition_epoch = state.leader, state.leader_epoch, state.partition_epoch
        self.is_leading = may_lead and state.leader == self.node_id and self._failure is None
        if self.is_leading and is_new_epoch:
            # Even before the epoch's first record: replicas that ask where an epoch ended must learn of this one.
            self.log.assign_epoch(self.leader_epoch, self.log.log_end_offset)
            if self.log.needs_flush:  # as a follower it was still flushing: this end counts for the high watermark afterwards
                self._flush_up_to(self.log.log_end_offset)
            if self.log.high_watermark < self.log.log_end_offset:
                self.unread_bytes = self.log.size_bytes  # some of it is read when the high watermark moves
        self._follow_replicas(is_new_epoch)
        self.follow_config()
        if is_new_epoch or was_leading != self.is_leading:
            self.settle_acks()
            self._wake_fetches()

    def _follow_replicas(self, is_new_epoch: bool) -> None:
        """The metadata has other replicas, another ISR or another leader."""
        if not self.is_leading or len(self.replicas) == 1:
            self.in_sync = None
            self.follower_ends.clear()
        elif is_new_epoch or self.in_sync is None:
            self.follower_ends.clear()
            newest = self.log.epochs.latest_entry
            start = newest[1] if newest is not None and newest[0] == self.leader_epoch else self.log.log_end_offset
            now_s = self.log.clock.monotonic_s()
            self.in_sync = InSyncReplicas(self.node_id, self.replicas, self.isr, start, self.follower_ends, now_s)
        else:
            self.in_sync.adopt(self.replicas, self.isr, self.log.clock.monotonic_s())
        self.count_in_sync()
        self.look_for_followers()

    def look_for_followers(self) -> None:
        """Something has changed that followers' next fetches have to look at."""
        for watch in self.follower_watches:
            watch.look()

    def follow_config(self) -> None:
        """The log's settings or the replicas have changed."""
        self.min_isr = min(self.log.config.min_insync_replicas, len(self.replicas))
        self.advance()

    def fail(self, code: int, text: str) -> None:
        """The partition is offline or deleted: refuse it from now on, parked requests on the loop's next turn."""
        self._failure = (code, text)
        self.is_leading = False
        # Not at once, as after an append: this may be in the middle of a request whose write has found the disk failed.
        self.settle_soon()
        self._wake_fetches()

    def _wake_fetches(self) -> None:
        if self.watches or self.follower_watches:
            self._owner.has_changed(self)

    # Leadership checks

    def check_leading(self, leader_epoch: int = -1, may_follow: bool = False) -> None:
        """Raise a `KafkaError` unless this node leads the partition, and in `leader_epoch` unless that is -1.

        With `may_follow` it may also follow another leader in that epoch.
        """
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
        if not self.is_leading and not (may_follow and self._failure is None and self.leader not in (self.node_id, NO_LEADER)):
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
        small = Effort(SMALL_BYTES, is_wanted=lambda: is_wanted, now_s=self.log.clock.monotonic_s)
        full = Effort(UNLIMITED, is_wanted=lambda: is_wanted, now_s=self.log.clock.monotonic_s)
        try:
            try:
                valid: ValidBatch = yield OffLoop(check_produced(self.log, records, request_version, small), 2 * SMALL_BYTES)
            except TooExpensive as stopped:
                drop_frames(stopped)  # they hold the decompressed batch, and the next call may wait for long
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

    def settle_acks(self) -> None:
        self._settling.now(self)

    def settle_soon(self) -> None:
        self._settling.soon(self)

    # Leading other replicas

    def follower_fetches(self, replica: int, offset: int, log_start_offset: int, broker_epoch: int) -> None:
        """A replica fetches from `offset` in this leader epoch, and its log does not diverge below: count it.

        Raises a `KafkaError` if it is no replica, or if the fetch is of an earlier process of its broker.
        """
        in_sync = self.in_sync
        if in_sync is None or replica not in in_sync.remote:
            raise KafkaError(
                ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"node {replica} is no replica of {self.name}: its replicas are {list(self.replicas)}",
            )
        if in_sync.is_stale(replica, broker_epoch):
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"a fetch of {self.name} comes from an earlier process of broker {replica}"
            )
        log = self.log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            return  # the read refuses it
        starts_later = log_start_offset > in_sync.remote[replica].log_start_offset
        in_sync.fetched(replica, offset, log_start_offset, broker_epoch, log.log_end_offset, log.clock.monotonic_s())
        if replica not in self.isr:
            self.count_in_sync()
            grown = in_sync.growth(replica, log.high_watermark, self._owner.is_eligible)
            if grown is not None:
                self._ask_for(in_sync, grown)
        self.advance()
        if starts_later and self.ack_waits:
            self.settle_acks()

    @property
    def low_watermark(self) -> int:
        """The lowest log start offset of this log and of the other replicas that are up."""
        start = self.log.log_start_offset
        return start if self.in_sync is None else self.in_sync.low_watermark(start, self._owner.is_eligible)

    def drop_lagging(self) -> None:
        """Ask for an ISR without the replicas that lag."""
        if self.in_sync is not None:
            lag_s, now_s = self._owner.replica_lag_s, self.log.clock.monotonic_s()
            shrunk = self.in_sync.shrinkage(self.log.log_end_offset, lag_s, now_s)
            if shrunk is not None:
                self._ask_for(self.in_sync, shrunk)
            self.count_in_sync()
            self.advance()
            for watch in self.follower_watches:
                watch.recheck()

    def count_in_sync(self) -> None:
        """Find out for which replicas the high watermark waits now."""
        if self.in_sync is None:
            self._others_in_sync = ()
        else:
            self._others_in_sync = self.in_sync.awaited(
                self.log.log_end_offset, self._owner.replica_lag_s, self._owner.is_eligible, self.log.clock.monotonic_s()
            )

    def _ask_for(self, in_sync: InSyncReplicas, isr: tuple[int, ...]) -> None:
        epochs = tuple(map(in_sync.broker_epoch, isr))
        in_sync.pending = Change(isr, self.leader_epoch, self.partition_epoch, epochs, self.isr)
        self.count_in_sync()
        self._owner.wants_isr_change(self)

    def isr_decided(self, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> None:
        """The controller has changed the ISR. The metadata may have said so already, or something newer."""
        if leader_epoch != self.leader_epoch or partition_epoch <= self.partition_epoch or self.in_sync is None:
            return
        self.isr, self.partition_epoch = isr, partition_epoch
        self._follow_replicas(is_new_epoch=False)
        self.advance()

    def isr_refused(self, change: Change) -> None:
        """The controller has not made `change`: the ISR is as it was."""
        if self.in_sync is not None and self.in_sync.pending is change:
            self.in_sync.pending = None
            self.count_in_sync()
            self.advance()

    @property
    def isr_size_max(self) -> int:
        """How many replicas may be in sync, pending additions included."""
        return len(self.isr) if self.in_sync is None else len(self.in_sync.maximal)

    # Following a leader

    def check_following(self, leader_epoch: int) -> None:
        """Raise a `KafkaError` unless this node follows another leader in `leader_epoch`."""
        if self._failure is not None:
            raise KafkaError(*self._failure)
        if self.leader in (self.node_id, NO_LEADER) or leader_epoch != self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH, f"{self.name} follows no leader in epoch {leader_epoch} any more: {self!r}"
            )

    def append_as_follower(self, records: Buffer, leader_epoch: int) -> AppendInfo:
        """Append batches of the leader of `leader_epoch`; raises a `KafkaError` if they cannot be."""
        self.check_following(leader_epoch)
        try:
            info = self.log.append_as_follower(records, leader_epoch)
        except OttlaError as failure:
            raise self.refused_by(failure) from None
        self.unread_bytes += info.size_bytes
        if self.log.flush_wanted_up_to is not None:
            self._owner.upkeep_is_due()
        return info

    def follow_offsets(self, high_watermark: int, log_start_offset: int) -> None:
        """Take over the leader's high watermark and log start offset, as far as this log reaches."""
        log = self.log
        if log.increment_high_watermark(min(high_watermark, log.log_end_offset)) and self.watches:
            self._owner.has_news(self)
        if log_start_offset > log.log_start_offset:
            try:
                log.delete_records(min(log_start_offset, log.high_watermark))
            except OttlaError as failure:  # such as a directory that has failed, and is not taken offline yet
                raise self.refused_by(failure) from None

    # Flushing before an acknowledgement

    def _flush_up_to(self, offset: int) -> None:
        self._flush_goal = max(self._flush_goal, offset)
        if self.flushing is None:
            self.flushing = watched(f"flushing {self.name}", self._flush(), self._owner.broken)

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


class PartitionOwner(Protocol):
    """What a partition calls on the object that holds it."""

    def has_news(self, partition: Partition) -> None:
        """Fetches watch the partition, and there is more to read."""
        ...

    def has_changed(self, partition: Partition) -> None:
        """Fetches watch the partition, and may have to be refused now."""
        ...

    def has_more_for_followers(self, partition: Partition) -> None:
        """Followers' fetches watch the partition, and its log has grown."""
        ...

    @property
    def replica_lag_s(self) -> float:
        """replica.lag.time.max.ms, in seconds."""
        ...

    def is_eligible(self, replica: int, broker_epoch: int) -> bool:
        """Whether the metadata lets a replica that fetched with `broker_epoch` into an ISR."""
        ...

    def wants_isr_change(self, partition: Partition) -> None:
        """The partition has a pending change of its ISR, for which the controller has not been asked yet."""
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


class AckWaiter(Protocol):
    """A request that waits for the high watermark or the disk."""

    def settle(self, partition: Partition) -> bool:
        """The partition has changed: True if the wait is over, with success or failure."""
        ...


class Settling:
    """Whether a partition's waits are being settled, or will be."""

    __slots__ = ("_is_again", "_is_due", "_is_running")

    def __init__(self) -> None:
        self._is_running = self._is_again = self._is_due = False

    def now(self, partition: Partition) -> None:
        """Settle the waits that have been reached, and those that can no longer be; later if a round is under way."""
        self._is_due = False
        self._is_again = True
        if self._is_running:
            return
        self._is_running = True
        try:
            while self._is_again:
                self._is_again = False
                for wait in list(partition.ack_waits):
                    if wait.settle(partition):
                        partition.ack_waits.pop(wait, None)
        finally:
            self._is_running = False

    def soon(self, partition: Partition) -> None:
        """Settle on the loop's next turn."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self.now, partition)
