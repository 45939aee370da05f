"""One coordinator shard with its partition: decisions become records, records are committed, answers leave.

Owns the shard between its loading and its end. The records of a decision are encoded, then replayed at once, then put into a
batch that is appended at the loop's next turn, together with those of all decisions made until then; an answer waits until
everything that was written before it is committed (`ottla.coordinator.contract`). Records of a transaction have a batch of
their own.

If an append fails, or is not committed in time, the shard is ahead of its log: it is given up with everything that waits for
it, and its owner loads another. One event loop; everything here is plain calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ottla.broker.partitions.partition import ALL_IN_SYNC, Partition
from ottla.broker.request import Pending
from ottla.coordinator.contract import Answer, CoordinatorRecord, Effects, Instant, Producer, Reply, Shard
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC
from ottla.log.origin import AppendOrigin
from ottla.records.builder import build_produce_batch
from ottla.records.compression import Codec
from ottla.wire.log_records import encode_coordinator_key, encode_coordinator_value

if TYPE_CHECKING:
    from ottla.env import Clock
    from ottla.log.producers.verification import VerificationState
    from ottla.records.kernels import Row

logger = logging.getLogger("ottla.coordinator")

S = TypeVar("S", bound=Shard)

BATCH_OVERHEAD_BYTES = 61
RECORD_OVERHEAD_BYTES = 32
"""What surrounds a record's key and value, at most."""
EXPIRE_PER_TURN = 100
"""How many deadlines are dealt with before others get their turn."""


class PendingReply(Pending, Reply):
    """The reply to a request that a shard answers, now or later."""

    __slots__ = ()


class Waiting(NamedTuple):
    """What is to be done when everything below `end_offset` is committed."""

    end_offset: int
    answers: list[Answer]
    orders: list[Any]


class ShardOwner:
    """What a hosted shard tells whoever loaded it."""

    def carry_out(self, shard: HostedShard[Any], orders: list[Any]) -> None:
        """The records that came with these orders are committed."""

    def given_up(self, shard: HostedShard[Any]) -> None:
        """The shard is of no use any more: load another, if its partition is still led here."""


class HostedShard(Generic[S]):
    """A shard that has been loaded, at work. `ask` is the door for requests, `submit` for what comes of itself."""

    def __init__(self, owner: ShardOwner, shard: S, partition: Partition, clock: Clock, commit_timeout_ms: int) -> None:
        self._owner = owner
        self._clock = clock
        self._commit_timeout_s = commit_timeout_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._batch: list[Row] = []
        self._batch_bytes = BATCH_OVERHEAD_BYTES
        self._is_append_due = False
        self._waiting: deque[Waiting] = deque()
        self._commit_timer: asyncio.TimerHandle | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms: int | None = None
        self.shard = shard
        self.partition = partition
        self.epoch = partition.leader_epoch
        """The coordinator's epoch: the leader's, in which the shard was loaded."""
        self.is_over = False
        self.codec = Codec.NONE
        """What batches are compressed with."""

    def now(self) -> Instant:
        return Instant(self._clock.now_ms(), int(self._clock.monotonic_s() * 1000))

    def begin(self) -> None:
        """The shard is loaded: let it serve."""
        self.submit(self.shard.loaded(self.now()))

    @property
    def is_at_rest(self) -> bool:
        """Whether all that was decided is appended, committed and told, and nothing is done to a batch but to append it."""
        return not (self._batch or self._waiting or self.is_over or self.codec)

    # -- deciding

    def ask(self, decide: Callable[[S, Reply, Instant], Effects], verified_by: VerificationState | None = None) -> PendingReply:
        """Have a request decided. A `KafkaError` that `decide` raises goes to the caller, and nothing has happened."""
        reply = PendingReply()
        self.submit(decide(self.shard, reply, self.now()), verified_by)
        return reply

    def submit(self, effects: Effects, verified_by: VerificationState | None = None) -> None:
        """Do what a decision wants done. `KafkaError` if its records are refused as a whole: nothing has happened then.

        Of a decision that is bound to its records, nothing is left in another way: the shard is given up.
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
            for reply, _ in effects.answers:  # some may have been parked for long, and are in nobody's hands now
                _deliver(reply, refused)
            if effects.is_bound:
                self._take_back(refused)
            raise
        if not effects.records and not effects.orders and self._is_all_committed:
            for reply, response in effects.answers:
                _deliver(reply, response)
        elif effects.answers or effects.orders:
            self._waiting.append(Waiting(self._end_offset, effects.answers, effects.orders))
            if not self._batch:
                self.settle()
        self._set_alarm()

    @property
    def _is_all_committed(self) -> bool:
        """Whether nothing was written that an answer would have to wait for, as `settle` would find."""
        partition = self.partition
        log = partition.log
        return (
            not self._waiting
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
            # Before they are replayed: of all records, these can be refused for what they are.
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
        """Append what is decided already: somebody else is about to append to the partition, and the order must be kept."""
        self._append_batch()

    def _append_batch(self) -> None:
        """Append what was decided since the loop's last turn."""
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
        """The log could not be appended to, by who may do so at rest: the shard is given up. Returns what to tell clients."""
        self._take_back(self.partition.refused_by(failure))
        return _lost(self.partition)

    def _take_back(self, refused: KafkaError) -> None:
        logger.error("what was decided for %s could not be written and is taken back: %s", self.partition.name, refused)
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
        """Answer those whose records are committed. Also called by the partition, as one that waits for acknowledgement.

        True if nothing waits any more.
        """
        if self.is_over:
            return True
        if not self.partition.is_leading or self.partition.leader_epoch != self.epoch:
            self.give_up()
            return True
        committed = self.partition.log.high_watermark
        while self._waiting and self._waiting[0].end_offset <= committed:
            _, answers, orders = self._waiting.popleft()
            for reply, response in answers:
                _deliver(reply, response)
            if orders:
                self._owner.carry_out(self, orders)
        if self._waiting:
            self._wait_for_commit()
            return False
        if self._commit_timer is not None:
            self._commit_timer.cancel()
            self._commit_timer = None
        return True

    def _wait_for_commit(self) -> None:
        self.partition.ack_waits[self] = None
        if self._commit_timer is None:
            self._commit_timer = self._loop.call_later(self._commit_timeout_s, self._commit_is_late)

    def _commit_is_late(self) -> None:
        self._commit_timer = None
        logger.error(
            "the replicas of %s did not take its records in %g s (%s): what waits for them fails",
            self.partition.name,
            self._commit_timeout_s,
            "offsets.commit.timeout.ms" if self.partition.topic == OFFSETS_TOPIC else "request.timeout.ms",
        )
        self.give_up(ErrorCode.COORDINATOR_NOT_AVAILABLE)

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
            # In whole milliseconds, as `now` counts them: an alarm that is a fraction early would go off again and again.
            wait_ms = max(0, deadline_ms - self.now().steady_ms)
            self._alarm = self._loop.call_later(wait_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._alarm, self._alarm_ms = None, None
        for _ in range(EXPIRE_PER_TURN):
            deadline_ms = None if self.is_over else self.shard.next_deadline_ms
            if deadline_ms is None or deadline_ms > (now := self.now()).steady_ms:
                break
            try:
                self.submit(self.shard.expire(now))
            except KafkaError as refused:
                logger.error(
                    "%s: what was due could not be written, its coordinator is loaded again: %s", self.partition.name, refused
                )
                self.give_up()
                return
            except Exception:  # nobody waits who could be told, and what it left behind cannot be trusted
                logger.exception("%s: what was due could not be done; its coordinator is loaded again", self.partition.name)
                self.give_up()
                return
        self._set_alarm()

    # -- the end

    def give_up(self, code: int = ErrorCode.NOT_COORDINATOR) -> None:
        """Serve no more: whoever waits is told to look for the coordinator again."""
        if self.is_over:
            return
        self.is_over = True
        self.partition.ack_waits.pop(self, None)
        for timer in (self._alarm, self._commit_timer):
            if timer is not None:
                timer.cancel()
        self._alarm = self._commit_timer = None
        waiting, self._waiting = self._waiting, deque()
        for _, answers, _ in waiting:
            for reply, _ in answers:
                _deliver(reply, _lost(self.partition, code))
        for reply, refusal in self.shard.refuse_waiting(_lost(self.partition, code)):
            _deliver(reply, refusal)
        self._owner.given_up(self)


def _lost(partition: Partition, code: int = ErrorCode.NOT_COORDINATOR) -> KafkaError:
    return KafkaError(code, f"the coordinator for {partition.name} has to begin again or has moved: look for it, and ask again")


def _deliver(reply: Reply, response: Any) -> None:
    assert isinstance(reply, PendingReply), "replies are made by `ask`"
    if isinstance(response, KafkaError):
        reply.fail(response)
    else:
        reply.complete(response)
