"""Endings of transactions: no marker is sent twice while it is in flight, and a transaction is completed once."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from tests.support.nodes.held_partitions import virtual

from ottla.broker.runtime.coordinators.transaction_endings import RETRY_BACKOFF_S, Endings
from ottla.broker.runtime.coordinators.transaction_markers import Marker, Outcome
from ottla.coordinator.contract import Effects, Instant, Producer, Reply
from ottla.coordinator.transactions.shard import TransactionShard
from ottla.coordinator.transactions.table import TransactionSettings
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

ONE, TWO, THREE = (TopicPartition("t", index) for index in (1, 2, 3))
PRODUCER = Producer(100, 0)
NOW = Instant(1_000, 1_000)
DONE, MOVED = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER


class Hosted:
    """A shard whose records are committed at once."""

    epoch = 7

    def __init__(self, shard: TransactionShard, endings: Endings) -> None:
        self.shard = shard
        self.endings = endings
        self.is_over = False
        self.has_enough_replicas = True

    def now(self) -> Instant:
        return NOW

    def submit(self, effects: Effects) -> None:
        for record in effects.records:
            self.shard.replay(record, 0, None)
        for order in effects.orders:
            self.endings.begin(cast(Any, self), order)


class Coordinator:
    """Node 1 coordinates a producer of transaction version 1; nodes 2 and 3 lead the partitions and answer when told to."""

    def __init__(self) -> None:
        self.leaders = {ONE: 2, TWO: 3, THREE: 2}
        self.sent: list[tuple[int, list[TopicPartition], Callable[[Outcome], None]]] = []
        metadata = SimpleNamespace(
            partition=lambda topic, index: (
                SimpleNamespace(leader=leader)
                if (leader := self.leaders.get(TopicPartition(topic, index))) is not None
                else None
            )
        )
        self.endings = Endings(1, cast(Any, metadata), cast(Any, None), self._send)
        self.shard = TransactionShard(TransactionSettings(transaction_version=2), lambda: PRODUCER.id)
        self.hosted = Hosted(self.shard, self.endings)
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1)
        self.hosted.submit(self.shard.initialise(request, Reply(), NOW))

    def _send(self, node_id: int, marker: Marker, names: list[TopicPartition], done: Callable[[Outcome], None]) -> None:
        self.sent.append((node_id, names, done))

    def commit(self, *names: TopicPartition) -> None:
        self.hosted.submit(self.shard.add_partitions("x", PRODUCER, names, 0, Reply(), None, NOW))
        request = EndTxnRequest(transactional_id="x", producer_id=PRODUCER.id, producer_epoch=0, committed=True)
        self.hosted.submit(self.shard.end(request, 0, Reply(), NOW))

    def load_again(self) -> None:
        """The shard is given up and loaded again: decided transactions are ended from the beginning."""
        self.hosted.is_over = True
        self.hosted = Hosted(self.shard, self.endings)
        self.hosted.submit(self.shard.loaded(NOW))

    def answer(self, at: int, code: int) -> None:
        """The request at this index of all that were sent is answered, or its connection fails."""
        _, names, done = self.sent[at]
        done(dict.fromkeys(names, code))

    @property
    def asked(self) -> list[tuple[int, list[TopicPartition]]]:
        return [(node_id, names) for node_id, names, _ in self.sent]

    @property
    def state(self) -> str:
        return self.shard.table.by_id["x"].state.name


async def backed_off() -> None:
    await asyncio.sleep(1.5 * RETRY_BACKOFF_S)


def test_retry_sends_only_markers_that_failed() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        coordinator.commit(ONE, TWO, THREE)
        assert coordinator.asked == [(2, [ONE, THREE]), (3, [TWO])]
        coordinator.answer(1, MOVED)
        await backed_off()
        assert coordinator.asked[2:] == [(3, [TWO])], "node 2 has not answered yet"
        coordinator.answer(2, DONE)
        assert coordinator.state == "PREPARE_COMMIT"
        coordinator.answer(0, DONE)
        assert coordinator.state == "COMPLETE_COMMIT"

    virtual(scenario())


def test_changed_metadata_does_not_repeat_markers_in_flight() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        coordinator.commit(ONE, TWO)
        coordinator.answer(1, MOVED)
        coordinator.leaders[TWO] = 2
        coordinator.endings.retry_now()
        coordinator.endings.retry_now()
        await backed_off()
        assert coordinator.asked[2:] == [(2, [TWO])]

    virtual(scenario())


def test_marker_is_sent_again_when_its_connection_failed() -> None:
    """Also when the leader registered again: `OtherBrokers` then ends the request and reports this code."""

    async def scenario() -> None:
        coordinator = Coordinator()
        coordinator.commit(ONE, TWO)
        for at in (0, 1):
            coordinator.answer(at, MOVED)
        await backed_off()
        assert coordinator.asked[2:] == [(2, [ONE]), (3, [TWO])]
        coordinator.answer(2, MOVED)
        coordinator.answer(3, DONE)
        await backed_off()
        assert coordinator.asked[4:] == [(2, [ONE])]
        coordinator.answer(4, DONE)
        assert coordinator.state == "COMPLETE_COMMIT"

    virtual(scenario())


def test_partition_deleted_while_its_marker_fails_completes_the_transaction() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        coordinator.commit(ONE, TWO)
        coordinator.answer(1, MOVED)
        coordinator.answer(0, DONE)
        del coordinator.leaders[TWO]
        coordinator.endings.retry_now()
        assert coordinator.state == "COMPLETE_COMMIT"

    virtual(scenario())


def test_repeated_answer_does_not_complete_the_next_transaction() -> None:
    """Under transaction version 1 the next transaction has the same producer id and epoch."""

    async def scenario() -> None:
        coordinator = Coordinator()
        coordinator.commit(ONE)
        coordinator.answer(0, DONE)
        assert coordinator.state == "COMPLETE_COMMIT"
        coordinator.commit(THREE)
        coordinator.answer(0, DONE)
        assert coordinator.state == "PREPARE_COMMIT", "partition 3 has no marker yet"
        coordinator.answer(1, DONE)
        assert coordinator.state == "COMPLETE_COMMIT"

    virtual(scenario())


def test_answer_for_a_dropped_shard_does_not_touch_the_loaded_one() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        coordinator.commit(ONE, TWO)
        coordinator.load_again()
        assert coordinator.asked[2:] == [(2, [ONE]), (3, [TWO])], "what was sent for the dropped shard does not count"
        coordinator.answer(0, DONE)
        coordinator.answer(1, DONE)
        assert coordinator.state == "PREPARE_COMMIT"
        coordinator.answer(2, DONE)
        coordinator.answer(3, MOVED)
        await backed_off()
        assert coordinator.asked[4:] == [(3, [TWO])]
        coordinator.answer(4, DONE)
        assert coordinator.state == "COMPLETE_COMMIT"

    virtual(scenario())


def test_transaction_completes_once_enough_replicas_are_in_sync() -> None:
    async def scenario() -> None:
        coordinator = Coordinator()
        coordinator.commit(ONE)
        coordinator.hosted.has_enough_replicas = False
        coordinator.answer(0, DONE)
        await backed_off()
        assert coordinator.state == "PREPARE_COMMIT"
        coordinator.hosted.has_enough_replicas = True
        await backed_off()
        assert coordinator.state == "COMPLETE_COMMIT"
        assert len(coordinator.sent) == 1

    virtual(scenario())
