"""A transaction coordinator's shard without a host: takes requests, returns responses, and keeps its records as bytes.

shard = ShardInHand(transaction_version=2)
producer = shard.initialise("id")
shard.add("id", producer, TopicPartition("t", 0))
order = shard.end("id", producer, commit=True).orders[0]
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from ottla.coordinator.contract import CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.transactions.shard import TransactionShard
from ottla.coordinator.transactions.table import TransactionSettings
from ottla.coordinator.transactions.transaction import SendMarkers, Transaction
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.wire.log_records import (
    InternalLog,
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_key,
    encode_coordinator_value,
)
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

T0 = 1_700_000_000_000
OLD, NEW = 0, 2
"""The transaction version of a client's request."""


class ShardInHand:
    """One shard, its log, its clock, and its orders that are not yet carried out."""

    def __init__(self, transaction_version: int = 2, **settings: Any) -> None:
        self.settings = TransactionSettings(transaction_version=transaction_version, **settings)
        self.ids = count(1000)
        self.elapsed_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.orders: list[SendMarkers] = []
        self.shard = TransactionShard(self.settings, lambda: next(self.ids))

    @property
    def now(self) -> Instant:
        return Instant(T0 + self.elapsed_ms, self.elapsed_ms)

    @property
    def known(self) -> dict[str, Transaction]:
        return self.shard.table.by_id

    def submit(self, effects: Effects) -> Any:
        """Carry out a decision; returns the response, if there is one. A `KafkaError` among the responses is raised."""
        for record in effects.records:
            self.log.append(_encoded(record))
            self.shard.replay(_decoded(*self.log[-1]), len(self.log) - 1, None)
        self.orders += effects.orders
        response = None
        for answer in effects.answers:
            response = answer.response
            if isinstance(response, KafkaError):
                raise response
        return response

    def loaded(self, up_to: int | None = None) -> TransactionShard:
        """Another shard, loaded from the log or from its first records."""
        shard = TransactionShard(self.settings, lambda: next(self.ids))
        for offset in range(len(self.log[:up_to])):
            self.replay_into(shard, offset)
        return shard

    def replay_into(self, shard: TransactionShard, offset: int) -> None:
        shard.replay(_decoded(*self.log[offset]), offset, None)

    def restart(self) -> None:
        """Load the shard again; orders that were not carried out are repeated."""
        self.shard = self.loaded()
        self.orders = []
        self.submit(self.shard.loaded(self.now))

    # -- requests

    def initialise(self, name: str, expected: Producer | None = None, timeout_ms: int = 60_000, **fields: Any) -> Producer:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms, **fields)
        if expected is not None:
            request.producer_id, request.producer_epoch = expected
        response = self.submit(self.shard.initialise(request, Reply(), self.now))
        return Producer(response.producer_id, response.producer_epoch)

    def keep(
        self, name: str, expected: Producer | None = None, timeout_ms: int = 60_000, **fields: Any
    ) -> tuple[Producer, Producer | None]:
        """The producer that gets the id, and the one whose open transaction it may end."""
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=timeout_ms, keep_prepared_txn=True, **fields
        )
        if expected is not None:
            request.producer_id, request.producer_epoch = expected
        response = self.submit(self.shard.initialise(request, Reply(), self.now))
        ongoing = Producer(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
        return Producer(response.producer_id, response.producer_epoch), None if ongoing == (-1, -1) else ongoing

    def add(self, name: str, producer: Producer, *partitions: TopicPartition, client: int = NEW) -> None:
        done = self.submit(self.shard.add_partitions(name, producer, partitions, client, Reply(), "added", self.now))
        assert done == "added"

    def end(self, name: str, producer: Producer, commit: bool, client: int = NEW) -> Producer:
        """The producer's next id and epoch, if the response has them."""
        request = EndTxnRequest(transactional_id=name, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit)
        response = self.submit(self.shard.end(request, client, Reply(), self.now))
        return Producer(response.producer_id, response.producer_epoch)

    def carry_out(self) -> list[SendMarkers]:
        """Carry out every order; returns them."""
        orders, self.orders = self.orders, []
        for order in orders:
            self.submit(self.shard.complete(order.transactional_id, order.producer, self.now))
        return orders

    def pass_time(self, elapsed_ms: int) -> None:
        """Advance the time; timers on the way run at their deadlines."""
        until = self.elapsed_ms + elapsed_ms
        while (deadline := self.shard.next_deadline_ms) is not None and deadline <= until:
            self.elapsed_ms = max(self.elapsed_ms, deadline)
            self.submit(self.shard.expire(self.now))
        self.elapsed_ms = until


def code_of(act: Callable[[], Any]) -> int:
    """The error code of `act`; 0 if it succeeds."""
    try:
        act()
    except KafkaError as refused:
        return refused.code
    return 0


def _encoded(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    return encode_coordinator_key(record.key), None if record.value is None else encode_coordinator_value(*record.value)


def _decoded(key: bytes, value: bytes | None) -> CoordinatorRecord:
    decoded = decode_coordinator_key(InternalLog.TRANSACTIONS, key)
    kept = None if value is None else decode_coordinator_value(InternalLog.TRANSACTIONS, decoded, value)
    return CoordinatorRecord(decoded, kept)
