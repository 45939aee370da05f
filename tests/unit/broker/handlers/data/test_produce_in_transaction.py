"""Produce of transactional producers: what waits, what is refused and with which code, what the order is."""

import asyncio

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.held_partitions import virtual, waiting
from tests.support.nodes.transaction_node import TOPIC, TransactionNode

from ottla.broker.handlers.data import produce
from ottla.broker.handlers.transactions import add_partitions_to_txn
from ottla.broker.requests.context import Pending
from ottla.coordinator.contract import Producer
from ottla.errors.codes import ErrorCode
from ottla.ids import TRANSACTIONS_TOPIC
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

OLD, ABORTABLE, NEW = 10, 11, 12
"""Versions of Produce: before TRANSACTION_ABORTABLE was known, since, and with implicit adding."""


async def add(node: TransactionNode, producer: Producer, *indexes: int) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="a",
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(indexes))],
    )
    response = await node.ask(add_partitions_to_txn, request, 3)
    (topic,) = response.results_by_topic_v3_and_below
    assert [each.partition_error_code for each in topic.results_by_partition] == [0] * len(indexes)


def test_the_first_batch_adds_its_partition_and_waits_for_that() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        handled = node.send("a", producer, 0)
        assert isinstance(handled, Pending)
        assert handled.holds_back, "what comes behind it on its connection must not overtake it"
        assert node.held.partition(TOPIC).log.log_end_offset == 0
        (entry,) = (await waiting(handled)).responses
        assert entry.partition_responses[0].base_offset == 0
        assert node.state("a") == "Ongoing"
        second = node.send("a", producer, 1)
        assert not isinstance(second, Pending), "from then on nobody is asked"

    virtual(scenario())


@pytest.mark.parametrize(
    ("version", "code"), [(OLD, ErrorCode.INVALID_TXN_STATE), (ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE)]
)
def test_older_producers_must_have_added_the_partition(version: int, code: int) -> None:
    async def scenario() -> None:
        node = await TransactionNode.open(transaction_version=1)
        producer = await node.initialise("a")
        assert (await node.produce("a", producer, 0, version=version)).error_code == code
        await add(node, producer, 0)
        assert (await node.produce("a", producer, 0, version=version)).error_code == 0
        assert (await node.produce("a", producer, 0, index=1, version=version)).error_code == code
        assert node.held.partition(TOPIC, 1).log.log_end_offset == 0

    virtual(scenario())


def test_verification_can_be_switched_off_for_older_producers() -> None:
    async def scenario() -> None:
        off = {"transaction.partition.verification.enable": "false"}
        node = await TransactionNode.open(transaction_version=1, settings=off)
        producer = await node.initialise("a")
        assert (await node.produce("a", producer, 0, version=ABORTABLE)).error_code == 0
        assert node.state("a") == "Empty"

    virtual(scenario())


@pytest.mark.parametrize(
    ("version", "code"), [(ABORTABLE, ErrorCode.NOT_ENOUGH_REPLICAS), (NEW, ErrorCode.CONCURRENT_TRANSACTIONS)]
)
def test_while_the_transaction_before_is_being_ended(version: int, code: int) -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        await add(node, producer, 0)
        await node.lead(-1, 0)
        assert (await node.end("a", producer, True, 5 if version == NEW else 4))[0] == 0
        after = Producer(producer.id, 1) if version == NEW else producer
        before_s = node.held.clock.monotonic_s()
        assert (await node.produce("a", after, 0, index=1, version=version)).error_code == code
        waited_s = node.held.clock.monotonic_s() - before_s
        assert waited_s == pytest.approx(0.1 if version == NEW else 0, abs=0.001)

    virtual(scenario())


def test_a_short_wait_for_the_end_of_the_transaction_before_is_not_seen() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        await add(node, producer, 0)
        await node.lead(-1, 0)
        assert (await node.end("a", producer, True))[0] == 0
        answer = waiting(node.send("a", Producer(producer.id, 1), 0, index=1))
        await asyncio.sleep(0.05)
        assert not answer.done()
        await node.lead(1, 0)
        (entry,) = (await answer).responses
        assert entry.partition_responses[0].error_code == 0

    virtual(scenario())


def test_without_a_coordinator_the_producer_tries_again() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        await node.held.change(TRANSACTIONS_TOPIC, 0, leader=-1)
        node.follow()
        assert (await node.produce("a", producer, 0)).error_code == ErrorCode.NOT_ENOUGH_REPLICAS

    virtual(scenario())


def test_zombies_are_told_so() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        zombie = await node.initialise("a")
        await node.initialise("a")
        refused = await node.produce("a", zombie, 0)
        assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        assert (await node.produce("b", zombie, 0)).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING

    virtual(scenario())


def test_a_batch_whose_producer_has_gone_is_not_appended() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        handled = node.send("a", producer, 0)
        handled.abandon()
        await asyncio.sleep(0.01)
        assert node.held.partition(TOPIC).log.log_end_offset == 0

    virtual(scenario())


def test_one_request_is_of_one_producer() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        parts = [
            PartitionProduceData(
                index=index,
                records=memoryview(make_batch(b"v", producer=(producer.id + index, producer.epoch, 0), transactional=True)),
            )
            for index in range(2)
        ]
        topics = [TopicProduceData(name=TOPIC, partition_data=parts)]
        request = ProduceRequest(transactional_id="a", acks=-1, timeout_ms=1000, topic_data=topics)
        response = await node.ask(produce, request, NEW)
        codes = [each.error_code for each in response.responses[0].partition_responses]
        assert codes == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2

    virtual(scenario())


def test_each_partition_is_answered_for_itself() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        producer = await node.initialise("a")
        parts = [
            PartitionProduceData(index=index, records=memoryview(make_batch(b"v", producer=(*producer, 0), transactional=True)))
            for index in (0, 1, 7)
        ]
        await node.lead(2, 1)
        topics = [TopicProduceData(name=TOPIC, partition_data=parts)]
        request = ProduceRequest(transactional_id="a", acks=-1, timeout_ms=1000, topic_data=topics)
        response = await node.ask(produce, request, NEW)
        codes = [each.error_code for each in response.responses[0].partition_responses]
        assert codes == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    virtual(scenario())


@pytest.mark.parametrize("verify", ["true", "false"])
def test_partition_that_begins_to_lead_during_the_verification_takes_no_batch(verify: str) -> None:
    """The coordinator was not asked about it: the batch would belong to no transaction, and no marker would ever end it."""

    async def scenario() -> None:
        node = await TransactionNode.open(settings={"transaction.partition.verification.enable": verify})
        producer = await node.initialise("a")
        parts = [
            PartitionProduceData(index=index, records=memoryview(make_batch(b"v", producer=(*producer, 0), transactional=True)))
            for index in (0, 1)
        ]
        await node.lead(2, 1)
        topics = [TopicProduceData(name=TOPIC, partition_data=parts)]
        request = ProduceRequest(transactional_id="a", acks=-1, timeout_ms=1000, topic_data=topics)
        answer = waiting(produce.handle(node.held.context(request.KEY, NEW), request))
        partition, state = node.held.partition(TOPIC, 1), node.held.metadata.partition(TOPIC, 1)
        assert state is not None
        partition.adopt(
            state._replace(leader=1, leader_epoch=state.leader_epoch + 1, partition_epoch=state.partition_epoch + 1)
        )
        assert partition.is_leading
        codes = [each.error_code for each in (await answer).responses[0].partition_responses]
        assert codes == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert partition.log.log_end_offset == 0

    virtual(scenario())


def test_records_that_are_no_batch_are_refused_as_such() -> None:
    async def scenario() -> None:
        node = await TransactionNode.open()
        for data in (b"", b"x" * 30, bytes(100)):
            answer = node.held.produced(TOPIC, 0, data, transactional_id="a")
            assert answer.error_code in (ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE), data

    virtual(scenario())
