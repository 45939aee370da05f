"""TransactionShard: the state of one partition of __transaction_state, its transactional ids and their transactions.

Joins the decisions and implements the contract with the host (`ottla.coordinator.contract`). Its orders are `SendMarkers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.coordinator.contract import Answer, CoordinatorRecord, Effects, Instant, Producer, Reply
from ottla.coordinator.transactions import ending, initialising, partitions
from ottla.coordinator.transactions.clockwork import Clockwork
from ottla.coordinator.transactions.markers import markers_of
from ottla.coordinator.transactions.settings import TransactionSettings
from ottla.coordinator.transactions.states import ENDING
from ottla.coordinator.transactions.table import TransactionTable
from ottla.coordinator.transactions.transaction_replay import FastTransactionReplay
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest


class TransactionShard:
    """Implements `Shard`, and the requests about transactions."""

    def __init__(self, settings: TransactionSettings, new_producer_id: Callable[[], int]) -> None:
        self.table = TransactionTable(settings, new_producer_id)
        self._clockwork = Clockwork(self.table)

    # -- Contract with the host

    @property
    def next_deadline_ms(self) -> int | None:
        return self.table.timers.next_deadline_ms

    def replay(self, record: CoordinatorRecord, offset: int, producer: Producer | None) -> None:
        self.table.replay(record)

    def replay_end(self, producer: Producer, is_commit: bool) -> None:
        """Nothing to do: no transaction writes to this topic."""

    def fast_replay(self) -> FastTransactionReplay:
        return FastTransactionReplay(self.table)

    def refuse_waiting(self, failure: KafkaError) -> Iterable[Answer]:
        return ()

    def loaded(self, now: Instant) -> Effects:
        """Send the markers of transactions that were being ended."""
        if self.table.by_id:
            self._clockwork.watch(now)
        return Effects(orders=[markers_of(known) for known in self.table.by_id.values() if known.state in ENDING])

    def expire(self, now: Instant) -> Effects:
        action = self.table.timers.pop_due(now)
        return Effects() if action is None else action(now)

    def follow(self, settings: TransactionSettings) -> None:
        """Use new settings: the broker's or the cluster's transaction version has changed."""
        self.table.settings = settings

    def complete(self, transactional_id: str, producer: Producer, now: Instant) -> Effects:
        """The host has carried out the order to send markers."""
        return ending.complete(self.table, transactional_id, producer, now)

    # -- Requests

    def initialise(self, request: InitProducerIdRequest, reply: Reply, now: Instant) -> Effects:
        effects = initialising.initialise(self.table, request, reply, now)
        self._clockwork.watch(now)
        return effects

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        wanted: Iterable[TopicPartition],
        client_version: int,
        reply: Reply,
        response: Any,
        now: Instant,
    ) -> Effects:
        effects = partitions.add(self.table, transactional_id, producer, wanted, client_version, reply, response, now)
        self._clockwork.watch(now)
        return effects

    def verify(self, transactional_id: str, producer: Producer, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return partitions.verify(self.table, transactional_id, producer, wanted)

    def end(self, request: EndTxnRequest, client_version: int, reply: Reply, now: Instant) -> Effects:
        return ending.end(self.table, request, client_version, reply, now)
