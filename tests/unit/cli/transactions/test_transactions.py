"""`ottla transactions` against a cluster in memory: hanging transactions, older brokers, tables, and wrong usage."""

import json
import time

import click
import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.groups.conftest import find_coordinator

from ottla.cli.transactions import complete_transactional_ids
from ottla.errors.codes import ErrorCode
from ottla.wire.messages import describe_transactions as described
from ottla.wire.messages import list_transactions as listed
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

IDS = {"payments": 10, "refunds": 11, "stale": 12}
"""Transactional ids and their producers; 13 is a producer that no coordinator knows."""

LONG_AGO_MS = int((time.time() - 3600) * 1000)


def list_transactions(request: listed.ListTransactionsRequest, version: int) -> listed.ListTransactionsResponse:
    found = [
        listed.TransactionState(transactional_id=name, producer_id=producer_id, transaction_state="Ongoing")
        for name, producer_id in IDS.items()
        if not request.producer_id_filters or producer_id in request.producer_id_filters
    ]
    return listed.ListTransactionsResponse(transaction_states=found)


def describe(request: described.DescribeTransactionsRequest, version: int) -> described.DescribeTransactionsResponse:
    """`payments` writes to orders-0, `refunds` to another partition, and the coordinator does not know `stale` any more."""
    states = []
    for name in request.transactional_ids:
        state = described.TransactionState(
            transactional_id=name,
            transaction_state="Ongoing",
            transaction_start_time_ms=LONG_AGO_MS,
            producer_id=IDS.get(name, -1),
            topics=[described.TopicData(topic="orders" if name == "payments" else "prices", partitions=[0])],
        )
        if name not in ("payments", "refunds"):
            state = described.TransactionState(transactional_id=name, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        states.append(state)
    return described.DescribeTransactionsResponse(transaction_states=states)


def describe_producers(request: DescribeProducersRequest, version: int) -> DescribeProducersResponse:
    """In partition 0 all four have open transactions; partition 1 has a recent one and a producer without one."""
    old = [
        ProducerState(
            producer_id=each,
            producer_epoch=each - 10,
            last_timestamp=LONG_AGO_MS,
            coordinator_epoch=-1,
            current_txn_start_offset=each,
        )
        for each in (10, 11, 12, 13)
    ]
    young = [
        ProducerState(producer_id=13, last_timestamp=int(time.time() * 1000), coordinator_epoch=4, current_txn_start_offset=5),
        ProducerState(producer_id=14, last_timestamp=LONG_AGO_MS, coordinator_epoch=0, current_txn_start_offset=-1),
    ]
    topics = [
        TopicResponse(
            name=topic.name,
            partitions=[
                PartitionResponse(partition_index=index, active_producers=young if index else old)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics
    ]
    return DescribeProducersResponse(topics=topics)


@pytest.fixture
def coordinator(node: FakeNode) -> FakeNode:
    node.handlers |= {
        FindCoordinatorRequest: find_coordinator,
        listed.ListTransactionsRequest: list_transactions,
        described.DescribeTransactionsRequest: describe,
        DescribeProducersRequest: describe_producers,
    }
    return node


def markers(node: FakeNode, code: int = 0) -> None:
    def write(request: WriteTxnMarkersRequest, version: int) -> WriteTxnMarkersResponse:
        partition = WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)
        topic = WritableTxnMarkerTopicResult(name="orders", partitions=[partition])
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(topics=[topic])])

    node.handlers[WriteTxnMarkersRequest] = write


def words(text: str) -> str:
    return " ".join(text.split())


def test_overdue_transactions_without_a_coordinator_hang(ottla: RunOttla, coordinator: FakeNode) -> None:
    """Hanging: overdue, and its id is unknown, was removed, or its transaction does not include the partition."""
    found = json.loads(ottla("transactions", "find-hanging", "--json").out)
    assert [(each["partition"], each["producerId"], each["durationMinutes"] >= 59) for each in found] == [
        (0, 11, True),
        (0, 12, True),
        (0, 13, True),
    ]
    soon = json.loads(ottla("transactions", "find-hanging", "--max-transaction-timeout", "600", "--json").out)
    assert soon == []


def test_partition_whose_producers_are_not_shown_is_left_out(ottla: RunOttla, coordinator: FakeNode) -> None:
    def refuse(request: DescribeProducersRequest, version: int) -> DescribeProducersResponse:
        response = describe_producers(request, version)
        response.topics[0].partitions[1].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return response

    coordinator.handlers[DescribeProducersRequest] = refuse
    said = ottla("transactions", "find-hanging", "--json")
    assert (said.rc, [each["producerId"] for each in json.loads(said.out)]) == (1, [11, 12, 13])
    assert "orders-1 is left out: the producers of partition orders-1: " in said.err


def test_abort_by_start_offset_finds_producer_and_epochs(ottla: RunOttla, coordinator: FakeNode) -> None:
    markers(coordinator)
    said = ottla("transactions", "--bootstrap-server", "localhost:9092", "abort", "orders:0", "--start-offset", "12")
    assert (said.rc, said.out, said.err) == (0, "", "")
    (request,) = coordinator.asked_for(WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (12, 2, 0)
    assert marker.transaction_result is False
    assert marker.topics[0].partition_indexes == [0]


def test_abort_by_producer_sends_only_the_marker(ottla: RunOttla, coordinator: FakeNode) -> None:
    markers(coordinator)
    flags = ("--producer-id", "7", "--producer-epoch", "0", "--coordinator-epoch", "3")
    assert ottla("transactions", "abort", "--topic", "orders", "--partition", "0", *flags).rc == 0
    (request,) = coordinator.asked_for(WriteTxnMarkersRequest)
    marker = request.markers[0]
    assert (marker.producer_id, marker.producer_epoch, marker.coordinator_epoch) == (7, 0, 3)
    assert not coordinator.asked_for(DescribeProducersRequest)


def test_refused_abort_is_reported(ottla: RunOttla, coordinator: FakeNode) -> None:
    markers(coordinator, ErrorCode.INVALID_PRODUCER_EPOCH)
    said = ottla("transactions", "abort", "orders:0", "--start-offset", "12")
    assert (said.rc, "in partition orders-0 was not aborted" in said.err, "INVALID_PRODUCER_EPOCH" in said.err) == (
        1,
        True,
        True,
    )


def test_force_terminate_retries_while_transactions_end(ottla: RunOttla, coordinator: FakeNode) -> None:
    codes = iter([ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR])
    coordinator.handlers[InitProducerIdRequest] = lambda request, version: InitProducerIdResponse(error_code=next(codes, 0))
    assert ottla("transactions", "force-terminate", "payments").rc == 0
    requests = coordinator.asked_for(InitProducerIdRequest)
    assert len(requests) == 3
    assert (requests[0].transactional_id, requests[0].producer_id, requests[0].producer_epoch) == ("payments", -1, -1)


def test_filters_and_old_brokers(ottla: RunOttla, coordinator: FakeNode) -> None:
    assert ottla("transactions", "list", "--state", "ongoing,PREPARE_ABORT").rc == 0
    assert coordinator.asked_for(listed.ListTransactionsRequest)[-1].state_filters == ["Ongoing", "PrepareAbort"]
    coordinator.served = all_versions(ListTransactions=(0, 0))
    assert ottla("transactions", "list", "--duration-filter", "-1").rc == 0
    for flag, what in (("--duration-filter", "by how long they are open"), ("--transactional-id-pattern", "by a pattern")):
        refused = ottla("transactions", "list", flag, "5")
        assert (refused.rc, f"too old to list transactions {what}" in words(refused.err)) == (1, True)


def test_tables_for_people(ottla: RunOttla, coordinator: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    markers(coordinator)
    monkeypatch.setattr("ottla.cli.transactions.is_for_people", lambda *_: True)
    assert "payments" in ottla("transactions", "list").out
    assert "orders-0" in ottla("transactions", "describe", "payments").out
    assert "orders-0" in ottla("transactions", "describe-producers", "orders:0").out
    assert "Minutes" in ottla("transactions", "find-hanging", "--topic", "orders").out
    assert "Aborted the transaction at offset 13" in ottla("transactions", "abort", "orders:0", "--start-offset", "13").out


def test_completion_offers_ids(coordinator: FakeNode, ottla: RunOttla) -> None:
    assert complete_transactional_ids(click.Context(click.Command("x")), click.Argument(["x"]), "p") == ["payments"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("describe",), "name the transactional id"),
        (("describe-producers",), "name one partition"),
        (("describe-producers", "orders"), "is not TOPIC:PARTITION"),
        (("describe-producers", "orders:0", "--topic", "orders"), "name one partition"),
        (("describe-producers", "--topic", "orders"), "name one partition"),
        (("find-hanging", "--partition", "0"), "--partition needs a --topic"),
        (("abort", "orders:0"), "say which transaction"),
        (("abort", "orders:0", "--producer-id", "1"), "say which transaction"),
        (("abort", "orders:0", "--producer-id", "1", "--start-offset", "1"), "say which transaction"),
        (("force-terminate",), "name one transactional id"),
        (("list", "--state", "asleep"), "--state does not know 'asleep'"),
    ],
)
def test_wrong_usage(ottla: RunOttla, coordinator: FakeNode, arguments: tuple[str, ...], said: str) -> None:
    refused = ottla("transactions", *arguments)
    assert refused.rc == 2
    assert said in words(refused.err)
