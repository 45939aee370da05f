"""One coordinator shard with its partition: writes the records of its decisions, and answers when they are committed.

Owns the shard from its loading until it is given up. The records of a decision are encoded, replayed at once, and put into a
batch that is appended on the loop's next turn, together with those of all decisions made until then. A response waits until
everything that was written before it is committed (`ottla.coordinator.contract`). Records of a transaction have a batch of
their own.

A response whose records are not committed within the commit timeout is replaced by COORDINATOR_NOT_AVAILABLE. The shard stays
as it is: the records are in its log, and are committed later unless another node becomes the leader. Orders wait until then.

If an append fails, the shard is ahead of its log: it is given up with all parked requests, and its owner loads it again. While
fewer replicas are in sync than min.insync.replicas, every append would fail: requests that may write are refused before they
are decided, timeouts wait, and requests that only read are served. One event loop; plain calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ottla.broker.partitions.partition import ALL_IN_SYNC, Partition
from ottla.broker.requests.context import Pending
from ottla.coordinator.contract import Answer, CoordinatorRecord, Effects, Instant, Producer, Reply, Shard
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import OFFSETS_TOPIC
from ottla.log.producers.append_checks import AppendOrigin
from ottla.records.builder import build_produce_batch
from ottla.records.compression import Codec
from ottla.wire.log_records import encode_coordinator_key, encode_coordinator_value

if TYPE_CHECKING:
    from ottla.broker.handlers.fast_path.kernel_commit_records import Commit
    from ottla.env import Clock
    from ottla.log.producers.append_checks import VerificationState
    from ottla.records.kernels import Row
    from ottla.wire.base import Message, Part

logger = logging.getLogger("ottla.coordinator")

S = TypeVar("S", bound=Shard)

BATCH_OVERHEAD_BYTES = 61
RECORD_OVERHEAD_BYTES = 32
"""The most that a record takes besides its key and value."""
EXPIRE_PER_TURN = 100
"""How many deadlines are handled before other tasks run."""
EXPIRE_RETRY_S = 1.0
"""How long a deadline that is due waits if too few replicas are in sync to write what follows from it."""


class PendingReply(Pending, Reply):
    """The reply to a request that a shard answers, now or later."""

    __slots__ = ()


class PendingFrame(PendingReply):
    """The reply to a commit that the fast path has appended: its frame is written when it is known."""

    __slots__ = ("_commit", "encoded")

    def __init__(self, commit: Commit) -> None:
        super().__init__()
        self._commit = commit
        self.encoded: list[Part] | None = None

    def complete(self, response: Message | None) -> None:
        self.encoded = [self._commit.reply(ErrorCode.NONE)]
        super().complete(None)

    def fail(self, failure: BaseException) -> None:
        assert isinstance(failure, KafkaError), "a shard that is given up says so"
        self.encoded = [self._commit.reply(failure.code)]
        super().fail(failure)


class Waiting(NamedTuple):
    """Responses that wait until everything below `end_offset` is committed, but not longer than until `deadline_s`."""

    end_offset: int
    deadline_s: float
    answers: list[Answer]


class Ordered(NamedTuple):
    """Orders that wait until everything below `end_offset` is committed, however long that takes."""

    end_offset: int
    orders: list[Any]


class ShardOwner:
    """What a hosted shard calls on the object that loaded it (`CoordinatorRuntime`)."""

    def carry_out(self, shard: HostedShard[Any], orders: list[Any]) -> None:
        """The records that came with these orders are committed."""

    def given_up(self, shard: HostedShard[Any]) -> None:
        """The shard is given up: load it again, if its partition is still led here."""


class HostedShard(Generic[S]):
    """A loaded shard. `ask` is for requests, `submit` for decisions without a request, such as timeouts."""

    def __init__(self, owner: ShardOwner, shard: S, partition: Partition, clock: Clock, commit_timeout_ms: int) -> None:
        self._owner = owner
        self._clock = clock
        self._commit_timeout_s = commit_timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._batch: list[Row] = []
        self._batch_bytes = BATCH_OVERHEAD_BYTES
        self._is_append_due = False
        self._waiting: deque[Waiting] = deque()
        self._ordered: deque[Ordered] = deque()
        self._is_settling = False
        self._commit_timer: asyncio.TimerHandle | None = None
        """Goes off at or before the deadline of the first of `_waiting`; it stays set when that one is answered."""
        self._late_offset: int | None = None
        """The end of the records whose lateness was logged; None if none are late."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms: int | None = None
        self.shard = shard
        self.partition = partition
        self.epoch = partition.leader_epoch
        """The coordinator epoch: the partition's leader epoch in which the shard was loaded."""
        self.is_over = False
        self.codec = Codec.NONE
        """The compression of batches."""

    def now(self) -> Instant:
        return Instant(self._clock.now_ms(), int(self._clock.monotonic_s() * 1000))

    def begin(self) -> None:
        """The shard is loaded: begin to serve requests."""
        self.submit(self.shard.loaded(self.now()))

    @property
    def may_append(self) -> bool:
        """Whether the fast path may append: all decisions are in the log, and batches are not compressed."""
        return not (self._batch or self.is_over or self.codec)

    def reply_when_committed(self, commit: Commit) -> PendingFrame:
        """The reply to a commit that the fast path has appended, for when everything up to it is committed."""
        reply = PendingFrame(commit)
        self._wait([Answer(reply, None)])
        self.settle()
        return reply

    # -- deciding

    @property
    def has_enough_replicas(self) -> bool:
        """Whether as many replicas are in sync as an append needs."""
        return len(self.partition.isr) >= self.partition.min_isr

    def ask(
        self,
        decide: Callable[[S, Reply, Instant], Effects],
        verified_by: VerificationState | None = None,
        may_write: bool = True,
    ) -> PendingReply:
        """Have a request decided. A `KafkaError` that `decide` raises goes to the caller, and nothing is changed.

        With `may_write`, COORDINATOR_NOT_AVAILABLE while too few replicas are in sync. Once decided it would be too late: the
        decision has changed state that is in no record, and the shard would have to be loaded again.
        """
        if may_write and not self.has_enough_replicas:
            raise _too_few_in_sync(self.partition)
        reply = PendingReply()
        self.submit(decide(self.shard, reply, self.now()), verified_by)
        return reply

    def submit(self, effects: Effects, verified_by: VerificationState | None = None) -> None:
        """Carry out a decision's effects. Raises a `KafkaError` if its records are refused; then nothing is written.

        If the decision has changed the shard already (`is_bound`), the shard is given up in that case.
        """
        try:
            if self.is_over:
                raise _lost(self.partition)
            if effects.may_split:
                for record in effects.records:
                    self._write([record], None, None)
            elif effects.records:
                self._write(effects.records, effects.producer, verified_by)
        except KafkaError as refused:
            for reply, response in effects.answers:  # parked replies are held only by the effects now
                # A parked member that has to join again has to do so in any case: `refused` might be fatal to it.
                is_rejoin = isinstance(response, KafkaError) and response.code == ErrorCode.REBALANCE_IN_PROGRESS
                _deliver(reply, response if is_rejoin else refused)
            if effects.is_bound:
                self._take_back(refused)
            self._set_alarm()
            raise
        if not effects.records and not effects.orders and self._is_all_committed:
            for reply, response in effects.answers:
                _deliver(reply, response)
        elif effects.answers or effects.orders:
            if effects.answers:
                self._wait(effects.answers)
            if effects.orders and not self.is_over:
                self._ordered.append(Ordered(self._end_offset, effects.orders))
            if not self._batch:
                self.settle()
        self._set_alarm()

    @property
    def _is_all_committed(self) -> bool:
        """Whether everything written is committed, so that a response need not wait."""
        partition = self.partition
        log = partition.log
        return (
            not self._waiting
            and not self._ordered
            and not self._batch
            and log.high_watermark == log.log_end_offset
            and partition.is_leading
            and partition.leader_epoch == self.epoch
        )

    @property
    def _end_offset(self) -> int:
        return self.partition.log.log_end_offset + len(self._batch)

    # -- writing

    def _write(
        self, records: list[CoordinatorRecord], producer: Producer | None, verified_by: VerificationState | None
    ) -> None:
        encoded, size_bytes = self._encoded(records)
        is_full = self._batch_bytes + size_bytes > self.partition.log.config.max_message_bytes
        if self._batch and (is_full or producer is not None):
            self._append_batch()
            if self.is_over:
                raise _lost(self.partition)
        if producer is not None:
            # Appended before they are replayed: only a transaction's records can be refused by the log's checks.
            self._append(encoded, producer, verified_by)
            offset = self.partition.log.log_end_offset - len(encoded)
        else:
            offset = self._end_offset
            self._batch += encoded
            self._batch_bytes += size_bytes
            if not self._is_append_due:
                self._is_append_due = True
                self._loop.call_soon(self._turn)
        for record in records:
            self.shard.replay(record, offset, producer)
            offset += 1

    def _encoded(self, records: list[CoordinatorRecord]) -> tuple[list[Row], int]:
        now_ms = self._clock.now_ms()
        encoded: list[Row] = []
        size_bytes = 0
        for key, value in records:
            key_bytes = encode_coordinator_key(key)
            value_bytes = None if value is None else encode_coordinator_value(*value)
            size_bytes += RECORD_OVERHEAD_BYTES + len(key_bytes) + (0 if value_bytes is None else len(value_bytes))
            encoded.append((now_ms, key_bytes, value_bytes, ()))
        limit = self.partition.log.config.max_message_bytes
        if BATCH_OVERHEAD_BYTES + size_bytes > limit:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{len(records)} records of {size_bytes} bytes do not fit into one batch of {self.partition.name}, which may "
                f"have {limit} bytes: ask for less at a time, or raise max.message.bytes of that topic",
            )
        return encoded, size_bytes

    def _turn(self) -> None:
        self._is_append_due = False
        self._append_batch()

    def write_out(self) -> None:
        """Append the decided records now, because a marker is about to be appended and the order must be kept."""
        self._append_batch()

    def _append_batch(self) -> None:
        """Append the records of all decisions since the last append."""
        batch, self._batch, self._batch_bytes = self._batch, [], BATCH_OVERHEAD_BYTES
        if not batch or self.is_over:
            return
        try:
            self._append(batch, None, None)
        except KafkaError as refused:
            self._take_back(refused)
            return
        self.settle()

    def failed(self, failure: OttlaError) -> KafkaError:
        """An append by the fast path failed: give up the shard. Returns the error for the client."""
        self._take_back(self.partition.refused_by(failure))
        return _lost(self.partition)

    def _take_back(self, refused: KafkaError) -> None:
        logger.error("records for %s could not be written; its coordinator is loaded again: %s", self.partition.name, refused)
        self.give_up()

    def _append(self, batch: list[Row], producer: Producer | None, verified_by: VerificationState | None) -> None:
        if producer is None:
            data = build_produce_batch(batch, codec=self.codec)
        else:
            data = build_produce_batch(
                batch, codec=self.codec, producer_id=producer.id, producer_epoch=producer.epoch, transactional=True
            )
        if self.partition.leader_epoch != self.epoch:
            raise self.partition.refusal()
        self.partition.append(data, ALL_IN_SYNC, origin=AppendOrigin.COORDINATOR, verified_by=verified_by)

    # -- committing

    def settle(self, partition: Partition | None = None) -> bool:
        """Answer the requests whose records are committed. Also called by the partition, as for any `AckWaiter`.

        Returns True if nothing waits any more.
        """
        if self.is_over:
            return True
        if not self.partition.is_leading or self.partition.leader_epoch != self.epoch:
            self.give_up()
            return True
        if not self._is_settling:
            # A delivered response can make its connection handle the next request, which settles again. Answered from
            # within, a thousand requests that have waited for the same record would exceed the depth of the stack.
            self._is_settling = True
            try:
                self._settle()
            finally:
                self._is_settling = False
        if self._waiting or self._ordered:
            self.partition.ack_waits[self] = None
            return False
        return True

    def _settle(self) -> None:
        log = self.partition.log
        while self._waiting and self._waiting[0].end_offset <= log.high_watermark:
            for reply, response in self._waiting.popleft().answers:
                _deliver(reply, response)
        while self._ordered and self._ordered[0].end_offset <= log.high_watermark:
            self._owner.carry_out(self, self._ordered.popleft().orders)
        if self._late_offset is not None and self._late_offset <= log.high_watermark:
            logger.info("%s: the replicas have caught up with its late records", self.partition.name)
            self._late_offset = None

    def _wait(self, answers: list[Answer]) -> None:
        """Have `answers` wait until everything written so far is committed. Each has the whole commit timeout for itself."""
        if self.is_over:  # since the decision: an append lets others go on, and one of them may have failed
            for reply, _ in answers:
                _deliver(reply, _lost(self.partition))
            return
        deadline_s = self._loop.time() + self._commit_timeout_s
        self._waiting.append(Waiting(self._end_offset, deadline_s, answers))
        if self._commit_timer is None:
            self._commit_timer = self._loop.call_at(deadline_s, self._commit_is_late)

    def _commit_is_late(self) -> None:
        """Fail the responses whose time is over. The shard keeps their records, and orders go on waiting for them."""
        self._commit_timer = None
        if self.settle():
            return  # nothing waits, or the shard is given up
        now_s = self._loop.time()
        while self._waiting and self._waiting[0].deadline_s <= now_s:
            end_offset, _, answers = self._waiting.popleft()
            self._log_late(end_offset)
            for reply, _ in answers:
                _deliver(reply, _late(self.partition, self._commit_timeout_s))
        if self._waiting and self._commit_timer is None and not self.is_over:
            self._commit_timer = self._loop.call_at(self._waiting[0].deadline_s, self._commit_is_late)

    def _log_late(self, end_offset: int) -> None:
        if self._late_offset is not None:
            return  # one line until the replicas have caught up
        self._late_offset = end_offset
        logger.error(
            "the replicas in sync of %s did not replicate its records in %g s (%s): requests that wait for them fail",
            self.partition.name,
            self._commit_timeout_s,
            "offsets.commit.timeout.ms" if self.partition.topic == OFFSETS_TOPIC else "request.timeout.ms",
        )

    # -- time

    def _set_alarm(self) -> None:
        deadline_ms = None if self.is_over else self.shard.next_deadline_ms
        if deadline_ms == self._alarm_ms:
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._alarm_ms = deadline_ms
        if deadline_ms is not None:
            # In whole milliseconds, as `now` counts them: an alarm that is a fraction early would be set again and again.
            wait_ms = max(0, deadline_ms - self.now().steady_ms)
            self._alarm = self._loop.call_later(wait_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._alarm, self._alarm_ms = None, None
        if not self.is_over and not self.has_enough_replicas:
            self._alarm_ms = self.shard.next_deadline_ms  # so that `_set_alarm` leaves the alarm alone
            self._alarm = self._loop.call_later(EXPIRE_RETRY_S, self._expire)
            return
        for _ in range(EXPIRE_PER_TURN):
            deadline_ms = None if self.is_over else self.shard.next_deadline_ms
            if deadline_ms is None or deadline_ms > (now := self.now()).steady_ms:
                break
            try:
                self.submit(self.shard.expire(now))
            except KafkaError as refused:
                logger.error(
                    "%s: a timeout could not be written; its coordinator is loaded again: %s", self.partition.name, refused
                )
                self.give_up()
                return
            except Exception:  # there is no request to fail, and the shard's state cannot be trusted
                logger.exception("%s: a timeout could not be handled; its coordinator is loaded again", self.partition.name)
                self.give_up()
                return
        self._set_alarm()

    # -- giving up

    def give_up(self) -> None:
        """Stop serving: parked requests get NOT_COORDINATOR, at which clients look for the coordinator again."""
        if self.is_over:
            return
        self.is_over = True
        self.partition.ack_waits.pop(self, None)
        for timer in (self._alarm, self._commit_timer):
            if timer is not None:
                timer.cancel()
        self._alarm = self._commit_timer = None
        waiting, self._waiting = self._waiting, deque()
        self._ordered.clear()
        self._owner.given_up(self)  # first: a delivered response can make a connection's next request come at once
        for _, _, answers in waiting:
            for reply, _ in answers:
                _deliver(reply, _lost(self.partition))
        for reply, refusal in self.shard.refuse_waiting(_lost(self.partition)):
            _deliver(reply, refusal)


def _lost(partition: Partition) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_COORDINATOR,
        f"the coordinator for {partition.name} is loaded again or has moved: find the coordinator and ask again",
    )


def _late(partition: Partition, timeout_s: float) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"the replicas in sync of {partition.name} did not replicate the coordinator's records in {timeout_s:g} s. The records "
        "stay in its log, so the request may still take effect: ask again",
    )


def _too_few_in_sync(partition: Partition) -> KafkaError:
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"{partition.name} has {counted(len(partition.isr), 'replica')} in sync, of {partition.min_isr} that its coordinator "
        "needs to write: bring back the others, or lower min.insync.replicas of that topic",
    )


def _deliver(reply: Reply, response: Any) -> None:
    assert isinstance(reply, PendingReply), "replies are made by `ask`"
    try:
        if isinstance(response, KafkaError):
            reply.fail(response)
        else:
            reply.complete(response)
    except Exception:  # a bug behind one reply: the others must get theirs
        logger.exception("a response of a coordinator could not be delivered")
