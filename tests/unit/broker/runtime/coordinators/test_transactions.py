"""The transaction coordinator on its node: markers reach all partitions despite lost leaders, failed disks and kills."""

import asyncio

import pytest
from tests.support.nodes.held_partitions import virtual
from tests.support.nodes.transaction_node import TOPIC, TransactionNode

from ottla.broker.handlers.transactions import init_producer_id, write_txn_markers
from ottla.broker.runtime.coordinators.transaction_endings import FENCED_BACKOFF_S, RETRY_BACKOFF_S
from ottla.broker.runtime.coordinators.verification import Begun
from ottla.coordinator.contract import Producer
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.metadata_records import FeatureLevelRecord
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


async def begun(node: TransactionNode, value: bytes = b"v") -> Producer:
    producer = await node.initialise("a")
    for index in range(2):
        assert (await node.produce("a", producer, 0, value, index=index)).error_code == 0
    return producer


@pytest.mark.parametrize("commit", [True, False])
def test_markers_end_the_transaction_in_every_partition(commit: bool) -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await begun(node)
        assert node.values() == []
        assert node.values(committed=False) == [b"v"]
        code, after = await node.end("a", producer, commit)
        assert (code, after) == (0, Producer(producer.id, 1))
        for index in range(2):
            assert node.values(index) == ([b"v"] if commit else [])
            log = node.held.partition(TOPIC, index).log
            assert log.last_stable_offset == log.log_end_offset == 2
        assert node.state("a") == ("CompleteCommit" if commit else "CompleteAbort")

    virtual(scenario())


def test_markers_are_tried_again_until_a_partition_has_a_leader() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await begun(node)
        await node.lead(-1)
        code, after = await node.end("a", producer, True)
        assert code == 0, "it is decided all the same"
        await asyncio.sleep(10 * RETRY_BACKOFF_S)
        assert node.state("a") == "PrepareCommit"
        assert node.values(1) == [b"v"]
        assert (await node.produce("a", after, 0, index=1)).error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        await node.lead(1)
        assert node.values(0) == [b"v"]
        assert node.state("a") == "CompleteCommit"

    virtual(scenario())


def test_partitions_that_were_deleted_need_no_marker() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await begun(node)
        await node.held.delete_topic(TOPIC)
        node.follow()
        assert (await node.end("a", producer, True))[0] == 0
        await asyncio.sleep(0)
        assert node.state("a") == "CompleteCommit"

    virtual(scenario())


@pytest.mark.parametrize("commit", [True, False])
def test_decided_transaction_is_ended_after_a_kill(commit: bool) -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await begun(node)
        await node.lead(-1, 0)
        await node.lead(-1, 1)
        assert (await node.end("a", producer, commit))[0] == 0
        await node.crash()
        while node.host.is_loading:
            await asyncio.sleep(0.01)
        assert node.state("a") == ("PrepareCommit" if commit else "PrepareAbort")
        await node.lead(1, 0)
        await node.lead(1, 1)
        for index in range(2):
            assert node.values(index) == ([b"v"] if commit else [])
        assert node.state("a") == ("CompleteCommit" if commit else "CompleteAbort")
        assert await node.end("a", producer, commit) == (0, Producer(producer.id, 1)), "asked again"

    virtual(scenario())


def test_transaction_completes_when_its_markers_are_flushed() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open(**{"flush.messages": 1})
        producer = await begun(node)
        assert (await node.end("a", producer, True))[0] == 0
        assert node.state("a") == "PrepareCommit"
        while node.state("a") != "CompleteCommit":
            await asyncio.sleep(0.001)
        for index in range(2):
            log = node.held.partition(TOPIC, index).log
            assert log.recovery_point == log.last_stable_offset == 2

    virtual(scenario())


def test_transaction_ends_although_a_partition_has_a_later_epoch() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await begun(node)
        log = node.held.partition(TOPIC, 0).log
        log.producers.producers[producer.id].epoch = 9
        assert (await node.end("a", producer, True))[0] == 0
        await asyncio.sleep(0)
        assert node.state("a") == "CompleteCommit"
        assert log.log_end_offset == 1

    virtual(scenario())


def test_marker_for_offsets_needs_a_loaded_group_shard() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        assert await node.host.verify("a", producer, [OFFSETS], True, Begun(lambda: None, lambda: False)) == {OFFSETS: 0}
        ended: list[tuple[Producer, bool]] = []
        hosted = node.coordinators.groups.shard_at(0)
        hosted.shard.replay_end = lambda producer, is_commit: ended.append((producer, is_commit))  # type: ignore[method-assign]
        hosted.give_up()
        assert (await node.end("a", producer, True))[0] == 0
        await asyncio.sleep(2 * RETRY_BACKOFF_S)
        assert node.state("a") == "PrepareCommit", "the group shard is not loaded, so it could not replay the marker"
        while node.state("a") != "CompleteCommit":
            await asyncio.sleep(RETRY_BACKOFF_S)
        assert node.held.partition(OFFSETS_TOPIC).log.log_end_offset == 1
        assert ended == [], "another shard was loaded since"
        again = Producer(producer.id, 1)
        hosted = node.coordinators.groups.shard_at(0)
        hosted.shard.replay_end = lambda producer, is_commit: ended.append((producer, is_commit))  # type: ignore[method-assign]
        await node.host.verify("a", again, [OFFSETS], True, Begun(lambda: None, lambda: False))
        assert (await node.end("a", again, False))[0] == 0
        assert ended == [(Producer(producer.id, 2), False)]

    virtual(scenario())


def test_transactions_that_are_open_for_too_long_are_aborted() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a", timeout_ms=3000)
        assert (await node.produce("a", producer, 0)).error_code == 0
        await asyncio.sleep(9)
        assert node.state("a") == "Ongoing"
        await asyncio.sleep(2)
        assert node.state("a") == "CompleteAbort"
        assert node.held.partition(TOPIC).log.last_stable_offset == 2
        assert (await node.produce("a", producer, 1)).error_code == ErrorCode.INVALID_PRODUCER_EPOCH

    virtual(scenario())


def test_producer_ids_are_waited_for() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        node.ids.left = 0
        assert await node.initialise("a") == Producer(5000, 0)
        node.ids.is_refused = True
        request = InitProducerIdRequest(transactional_id="b", transaction_timeout_ms=1000)
        refused = await node.ask(init_producer_id, request, 5)
        assert (refused.error_code, refused.producer_id) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1)
        node.ids.is_refused = False
        assert await node.initialise("b") == Producer(5001, 0)

    virtual(scenario())


def test_changed_transaction_version_takes_effect_at_once() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open(transaction_version=1)
        assert node.host.shard_at(0).shard.table.settings.transaction_version == 1
        await node.held.commit(FeatureLevelRecord(name="transaction.version", feature_level=2))
        node.follow()
        assert node.host.shard_at(0).shard.table.settings.transaction_version == 2

    virtual(scenario())


def test_foreign_marker_with_a_higher_epoch_blocks_one_transaction_only() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await begun(node)
        stranger = WritableTxnMarker(producer_id=producer.id, producer_epoch=producer.epoch, coordinator_epoch=99)
        stranger.topics = [WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])]
        await node.ask(write_txn_markers, WriteTxnMarkersRequest(markers=[stranger]), 1)
        assert (await node.end("a", producer, True))[0] == 0
        await asyncio.sleep(0)
        assert node.state("a") == "PrepareCommit"
        assert node.values(1) == [b"v"], "the other partition has its marker"
        await node.initialise("b")
        await asyncio.sleep(1.5 * FENCED_BACKOFF_S)
        assert node.state("b") == "Empty"
        await node.held.delete_topic(TOPIC)
        node.follow()
        await asyncio.sleep(0)
        assert node.state("a") == "CompleteCommit"

    virtual(scenario())
