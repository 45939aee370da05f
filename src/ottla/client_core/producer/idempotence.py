"""`Idempotence`: the producer id, and the sequence numbers of each partition, which let brokers drop duplicates.

A batch gets its sequence number when it is sent for the first time and keeps it through all retries. If a broker has lost the
producer's state, or records are missing before a batch, the epoch is raised on this side and the partition starts again at 0
(idempotent producers); a transactional producer aborts its transaction instead.

Overtaken: a batch without an answer, refused as out of order, while a later one of the same epoch is stored. After a restart a
broker may know only a producer's newest batch, so the refused one may be stored or not, and no answer tells. The later batch
is no proof: a broker that has lost all of the producer's state takes any sequence number, and a power loss can lose a batch
and keep the next one in a newer segment. So it is not completed. With a new number it would be stored behind the later one,
perhaps for the second time. So it fails.

Alone: the first batch of a topic id. A leader that does not know this producer takes any first number, so if the first batch
waits for a leader that is lost, the second one must not overtake it at the next leader. A topic that was deleted and made again
knows no producer either.

Unresolved: a batch timed out after it was sent, so it is not known whether it is stored. No new batch follows until those
in flight are answered; then either the sequence continues, or the epoch is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from ottla.client_core.machine import ANY_NODE, Request
from ottla.client_core.producer.batch import ProducerBatch, next_sequence
from ottla.env.backoff import Backoff
from ottla.errors import KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_meaning
from ottla.ids import ZERO_UUID, Uuid
from ottla.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ottla.wire.base import UnsupportedVersion
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

Key = tuple[str, int]
Producer = tuple[int, int]
"""(producer id, epoch)."""

NO_PRODUCER: Producer = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
EPOCH_MAX = 32767
NONE_ACKED = -1
BATCHES_REMEMBERED = 5
"""How many batches of a producer a broker remembers for a partition: an older one is not found as a duplicate."""


class PartitionSequence:
    """The sequence numbers of one partition."""

    __slots__ = ("acked", "acked_offset", "in_flight", "next", "producer", "topic_id", "unresolved", "window")

    def __init__(self, producer: Producer) -> None:
        self.producer = producer
        self.next = 0
        self.acked = NONE_ACKED
        """The sequence number of the last record that the broker has acknowledged."""
        self.acked_offset = -1
        self.topic_id: Uuid | None = None
        """The topic that holds what is acknowledged; None before the first acknowledgement."""
        self.in_flight: list[ProducerBatch] = []
        """Batches with a sequence number that are not done, in its order. Those that wait for a retry count."""
        self.window: list[ProducerBatch] = []
        """The oldest of `in_flight` and every batch numbered since, done or not."""
        self.unresolved: int | None = None
        """The sequence number after the batch of which it is not known whether it is stored."""

    def is_next(self, sequence: int) -> bool:
        """Whether `sequence` comes right after what is acknowledged."""
        return sequence == (next_sequence(self.acked, 1) if self.acked != NONE_ACKED else 0)

    def is_behind(self, batch: ProducerBatch) -> bool:
        """Whether a later batch of the same epoch is acknowledged."""
        if batch.producer != self.producer or self.acked == NONE_ACKED:
            return False
        return (self.acked - batch.base_sequence) & 0x7FFFFFFF < 0x40000000


class Idempotence:
    """Who this producer is to the brokers."""

    def __init__(self, is_transactional: bool) -> None:
        self.is_transactional = is_transactional
        self.producer = NO_PRODUCER
        self.partitions: dict[Key, PartitionSequence] = {}
        self.unresolved: set[Key] = set()
        self._bump_for: set[Key] = set()

    @property
    def has_id(self) -> bool:
        """Whether the producer has an id: nothing can be sent before."""
        return self.producer[0] != NO_PRODUCER_ID

    def take_id(self, producer_id: int, epoch: int) -> None:
        """Take over an id and epoch from a broker."""
        self.producer = (producer_id, epoch)

    def restart(self) -> None:
        """Forget all sequence numbers: the producer has a new epoch, and nothing is in flight."""
        self.partitions.clear()
        self.unresolved.clear()
        self._bump_for.clear()

    def _entry(self, key: Key) -> PartitionSequence:
        entry = self.partitions.get(key)
        if entry is None:
            entry = self.partitions[key] = PartitionSequence(self.producer)
        return entry

    # Sending

    def may_send(self, batch: ProducerBatch, topic_id: Uuid = ZERO_UUID) -> bool:
        """Whether a batch may be sent to the topic with this id now, as far as sequence numbers go."""
        if not self.has_id:
            return False
        entry = self.partitions.get(batch.key)
        if entry is None:
            return True
        if batch.has_sequence:
            # A retry goes alone: only the oldest batch may be sent again. Before a new epoch, those that may be stored are
            # asked about with the old one: a new number would store them twice.
            if batch.key in self._bump_for:
                return batch is self.to_ask_about(batch.key)
            return entry.in_flight[0] is batch if entry.in_flight else True
        if batch.key in self._bump_for:
            return False
        if entry.in_flight and (entry.producer != self.producer or entry.in_flight[0].attempts > 0):
            return False
        if entry.in_flight and entry.topic_id != topic_id and not self.is_transactional:
            return False  # the first batch goes alone
        if len(entry.window) >= BATCHES_REMEMBERED:
            # The answer to the oldest may be lost while a new leader answers later ones: a broker must still know its retry.
            return False
        return batch.key not in self.unresolved

    def assign(self, batch: ProducerBatch) -> None:
        """A batch is sent now: if for the first time, give it its sequence number."""
        batch.is_reset = False  # the next answer is to the number that it has now
        if batch.has_sequence:
            return
        entry = self._entry(batch.key)
        if entry.producer != self.producer:
            self._start_over(entry)
        batch.set_producer(entry.producer, entry.next)
        entry.next = next_sequence(entry.next, batch.count)
        entry.in_flight.append(batch)
        entry.window.append(batch)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """`parts` go on in the place of a batch that was split."""
        entry = self._entry(batch.key)
        if batch in entry.in_flight:
            place = entry.in_flight.index(batch)
            entry.in_flight[place : place + 1] = parts
            place = entry.window.index(batch)
            entry.window[place : place + 1] = parts

    # Answers

    def acked(self, batch: ProducerBatch, offset: int) -> None:
        """A batch is stored."""
        entry = self._entry(batch.key)
        self._remove(entry, batch)
        if batch.producer == entry.producer:
            if entry.acked == NONE_ACKED or (batch.last_sequence - entry.acked) & 0x7FFFFFFF < 0x40000000:
                entry.acked = batch.last_sequence
                entry.topic_id = batch.topic_id
            if offset >= 0:
                entry.acked_offset = max(entry.acked_offset, offset + batch.count - 1)

    def is_worth_retrying(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> bool:
        """Whether a refused batch should be sent again. May ask for a higher epoch first."""
        entry = self._entry(batch.key)
        if error.code == ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset < 0 or batch.is_reset:
                return True
            if entry.is_behind(batch):
                return False
            if self.is_transactional:
                if entry.acked_offset < log_start_offset:
                    self._start_over(entry)  # retention removed the producer's records, and its state with them
                    return True
                return False
            batch.is_uncertain = False  # the broker has nothing of this producer
            self._ask_bump(batch)
            return True
        if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            # Found as a duplicate if it is the last batch stored. If it is stored before another one, that one is asked about
            # before the epoch is raised.
            batch.is_uncertain = False
            if entry.is_behind(batch):
                return False
            is_unresolved = batch.key in self.unresolved
            if not is_unresolved and (batch.is_reset or not entry.is_next(batch.base_sequence)):
                return True  # an earlier batch is still on its way
            if self.is_transactional:
                return False
            if not is_unresolved or entry.unresolved == batch.base_sequence:
                self._ask_bump(batch)
            return True
        return error.is_retriable

    def is_overtaken(self, batch: ProducerBatch) -> bool:
        """Whether a later batch of the same epoch is stored: this one can no longer be stored in order."""
        return self._entry(batch.key).is_behind(batch)

    def failed(self, batch: ProducerBatch, error: KafkaError, *, is_known_unstored: bool) -> None:
        """A batch has failed for good. `is_known_unstored`: no attempt can have stored it, so its numbers are free."""
        entry = self._entry(batch.key)
        if batch not in entry.in_flight:
            return
        self._remove(entry, batch)
        if error.code == ErrorCode.UNKNOWN_PRODUCER_ID and self.is_transactional:
            entry.next = 0
            entry.acked = NONE_ACKED
            entry.topic_id = None
        elif error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not self.is_transactional:
            self._ask_bump(batch)
        elif is_known_unstored and not self.is_transactional:
            self._ask_bump(batch)  # a transaction is aborted, and the next one has a new epoch

    def expired(self, batch: ProducerBatch) -> None:
        """A batch that was sent has timed out: it may be stored or not."""
        entry = self._entry(batch.key)
        if batch in entry.in_flight:
            self._remove(entry, batch)
            entry.unresolved = next_sequence(batch.base_sequence, batch.count)
            self.unresolved.add(batch.key)

    def resolve(self) -> bool:
        """Decide about partitions whose batches in flight are all answered. False: a transaction cannot go on."""
        is_sound = True
        for key in list(self.unresolved):
            entry = self.partitions[key]
            if entry.in_flight:
                continue
            self.unresolved.discard(key)
            entry.unresolved = None
            if not entry.is_next(entry.next):
                if self.is_transactional:
                    is_sound = False
                else:
                    self._bump_for.add(key)
        return is_sound

    # Epochs

    @property
    def is_bump_due(self) -> bool:
        """Whether an idempotent producer must raise its epoch before it sends more."""
        return bool(self._bump_for)

    @property
    def bump_keys(self) -> Collection[Key]:
        """The partitions that a higher epoch is needed for."""
        return self._bump_for

    def to_ask_about(self, key: Key) -> ProducerBatch | None:
        """The batch to send next to a partition that waits for a higher epoch: the first that may be stored or is overtaken."""
        if key not in self._bump_for:
            return None
        entry = self._entry(key)
        return next((batch for batch in entry.in_flight if batch.is_uncertain or entry.is_behind(batch)), None)

    @property
    def is_bump_safe(self) -> bool:
        """Whether no batch that would get a new number may be stored already, or would be stored behind a later one."""
        return all(self.to_ask_about(key) is None for key in self._bump_for)

    def bump(self) -> None:
        """Raise the epoch, or give up the id where the epoch cannot grow: then a new one must be asked for."""
        producer_id, epoch = self.producer
        self.producer = (producer_id, epoch + 1) if epoch < EPOCH_MAX else NO_PRODUCER
        for key in self._bump_for:
            if self.has_id:
                self._start_over(self._entry(key))
            else:
                self._entry(key).producer = NO_PRODUCER
        self.unresolved -= self._bump_for
        if self.has_id:
            self._bump_for.clear()

    def finish_bump(self) -> None:
        """After a new id: partitions that asked for it start over."""
        for key in self._bump_for:
            self._start_over(self._entry(key))
        self._bump_for.clear()

    def _ask_bump(self, batch: ProducerBatch) -> None:
        # Other partitions may have raised the producer's epoch since: this one still counts in the old one.
        if batch.producer == self._entry(batch.key).producer:
            self._bump_for.add(batch.key)

    def _start_over(self, entry: PartitionSequence) -> None:
        """Number the batches in flight from 0, with the present epoch."""
        entry.producer = self.producer
        entry.next = 0
        entry.acked = NONE_ACKED
        entry.topic_id = None
        entry.unresolved = None
        for batch in entry.in_flight:
            batch.set_producer(self.producer, entry.next)
            batch.is_reset = True
            entry.next = next_sequence(entry.next, batch.count)
        entry.window = list(entry.in_flight)

    def _remove(self, entry: PartitionSequence, batch: ProducerBatch) -> None:
        if batch in entry.in_flight:
            entry.in_flight.remove(batch)
            while entry.window and entry.window[0] not in entry.in_flight:
                del entry.window[0]


# `ProducerIds`: gets a producer id for an idempotent producer that has no transactions (InitProducerId, from any broker).

INIT_PRODUCER_ID_VERSION_MAX = 5
"""Used for everything but two-phase commit, which needs a version that Kafka 4.3 has not released."""
TWO_PHASE_VERSION = 6
_NO_TIMEOUT_MS = 0x7FFFFFFF


class BackoffSettings(Protocol):
    """The settings of retries."""

    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


def two_phase_request(message: InitProducerIdRequest, node: int, context: Any = None) -> Request:
    """A request of two-phase commit (KIP-939). A broker that does not serve it gets nothing: the request fails."""

    def adapted(version: int) -> InitProducerIdRequest:
        if version < TWO_PHASE_VERSION:
            raise UnsupportedVersion(
                "InitProducerId",
                f"two-phase commit needs version {TWO_PHASE_VERSION}, and the transaction coordinator of "
                f"{message.transactional_id} serves it up to {version} only. Brokers of Ottla serve it with "
                "transaction.two.phase.commit.enable=true, Apache Kafka 4.3 does not. Leave two-phase commit out, or change "
                "the brokers",
            )
        return message

    return Request(message, node, context=context, adapt=adapted)


class ProducerIds:
    """A machine that asks while the producer has no id. `error` is why it has stopped asking."""

    def __init__(self, settings: BackoffSettings, idempotence: Idempotence, random_below: Callable[[int], int]) -> None:
        self.error: KafkaError | None = None
        self._idempotence = idempotence
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._is_in_flight = False
        self._not_before_ms = 0

    @property
    def _is_due(self) -> bool:
        return not self._idempotence.has_id and not self._is_in_flight and self.error is None

    def step(self, now_ms: int) -> list[Request]:
        if not self._is_due or now_ms < self._not_before_ms:
            return []
        self._is_in_flight = True
        message = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        return [Request(message, ANY_NODE, version_max=INIT_PRODUCER_ID_VERSION_MAX)]

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if response.error_code:
            why = error_meaning(response.error_code)
            if response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                why = "the principal may write to no topic. Grant Write on the topic, or use another principal"
            text = f"the brokers gave this producer no id: {why}"
            self.failed(request, exception_of(response.error_code, text), now_ms)
            return
        self._is_in_flight = False
        self._backoff.succeeded()
        self._idempotence.take_id(response.producer_id, response.producer_epoch)
        self._idempotence.finish_bump()

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self._is_in_flight = False
        if error.is_retriable:
            self._not_before_ms = now_ms + self._backoff.failed()
        else:
            self.error = error

    def next_deadline_ms(self) -> int | None:
        return self._not_before_ms if self._is_due else None
