"""`ottla produce` against failing brokers: records are stored once and in order, or the failure is reported."""

import json

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNode, all_versions
from tests.unit.cli.conftest import RunOttla, describe, metadata_of
from tests.unit.cli.produce.stored_log import QUICK, Log, numbered

from ottla.errors.codes import ErrorCode
from ottla.records.batch import BatchView
from ottla.wire.messages.metadata import MetadataRequest


@pytest.mark.parametrize(("lines", "text"), [(1, "1 record"), (1200, "1,200 records"), (0, "0 records")])
def test_terminal_shows_how_many_records_are_stored(ottla: RunOttla, node: FakeNode, lines: int, text: str) -> None:
    Log(node)
    said = ottla("produce", "orders", stdin=numbered(lines), err_is_terminal=True)
    assert said.err.splitlines()[-1] == f"{text} stored in orders."


def test_all_records_are_stored_in_order(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    said = ottla("produce", "orders", "--partition", 1, "--batch-size", 100, "--summary", stdin=numbered(1000))
    assert said.rc == 0, said.err
    assert json.loads(said.out) == {
        "topic": "orders",
        "records": 1000,
        "notStored": 0,
        "partitions": [{"topic": "orders", "partition": 1, "records": 1000, "firstOffset": 0, "lastOffset": 999}],
    }
    assert log.values == {1: [b"%d" % number for number in range(1000)]}
    assert {(view.producer_id, view.producer_epoch) for view in log.views} == {(5, 0)}
    assert len(log.views) > 10


@pytest.mark.parametrize(
    "failure", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, HANG_UP]
)
def test_records_are_stored_once_despite_passing_failures(ottla: RunOttla, node: FakeNode, failure: object) -> None:
    """Every third request fails as a whole. Its batches are sent again with the same sequence numbers."""
    count = 0

    def refuse(partition: int, view: BatchView) -> object:
        nonlocal count
        count += 1
        return failure if count % 3 == 0 else 0

    log = Log(node, refuse)
    said = ottla("produce", "orders", "--batch-size", 200, *QUICK, stdin=numbered(500))
    assert said.rc == 0, said.err
    stored = [int(value or b"") for values in log.values.values() for value in values]
    assert sorted(stored) == list(range(500))
    for values in log.values.values():
        assert [int(value or b"") for value in values] == sorted(int(value or b"") for value in values)


def test_records_are_not_stored_twice_when_the_response_is_lost(ottla: RunOttla, node: FakeNode) -> None:
    lost: list[object] = [HANG_UP]

    def store_and_hang_up(partition: int, view: BatchView) -> object:
        if lost:
            log._store(partition, view)
            return lost.pop()
        return 0

    log = Log(node, store_and_hang_up)
    said = ottla("produce", "orders", "--partition", 0, *QUICK, stdin=b"a\nb\n")
    assert (said.rc, log.values) == (0, {0: [b"a", b"b"]})
    assert len(log.views) == 2


def test_batches_that_are_too_large_are_halved_until_they_fit(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node, lambda partition, view: ErrorCode.MESSAGE_TOO_LARGE if view.count > 3 else 0)
    assert ottla("produce", "orders", "--partition", 0, stdin=numbered(50)).rc == 0
    assert log.values[0] == [b"%d" % number for number in range(50)]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ErrorCode.MESSAGE_TOO_LARGE, "MESSAGE_TOO_LARGE"),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "TOPIC_AUTHORIZATION_FAILED"),
        (ErrorCode.INVALID_RECORD, "it has no key (INVALID_RECORD)"),
    ],
)
def test_lasting_failures_are_reported(ottla: RunOttla, node: FakeNode, code: int, said: str) -> None:
    Log(node, lambda partition, view: code)
    refused = ottla("produce", "orders", "--partition", 0, stdin=b"one\n")
    assert refused.rc == 1
    assert "orders-0" in refused.err
    assert said in refused.err
    assert refused.err.endswith(". 0 records stored in orders, 1 refused\n")
    assert refused.err.count("\n") == 1


def test_retries_end_at_their_limit_or_the_delivery_timeout(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node, lambda partition, view: ErrorCode.NOT_ENOUGH_REPLICAS)
    refused = ottla("produce", "orders", "--message-send-max-retries", 3, *QUICK, stdin=b"one\n")
    assert refused.rc == 1
    assert "NOT_ENOUGH_REPLICAS" in refused.err
    assert len(log.views) == 4
    assert refused.err.endswith(". 0 records stored in orders, 1 not known to be stored\n")
    short = ("--command-property", "delivery.timeout.ms=60", "--request-timeout-ms", 20)
    refused = ottla("produce", "orders", *short, *QUICK, stdin=b"one\n")
    assert refused.rc == 1
    assert "(delivery.timeout.ms)" in refused.err
    assert "replicas" in refused.err, "why the attempts failed"


def test_broker_without_init_producer_id_needs_a_setting(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    node.served = all_versions(InitProducerId=None, Produce=(3, 12))
    refused = ottla("produce", "orders", "--partition", 0, stdin=b"a\n")
    assert (refused.rc, "InitProducerId" in refused.err) == (1, True)
    assert "enable.idempotence=false" in refused.err
    plain = ("--partition", 0, "--command-property", "enable.idempotence=false")
    assert ottla("produce", "orders", *plain, stdin=b"a\n").rc == 0
    assert ottla("produce", "orders", "--partition", 0, "--acks", 1, stdin=b"b\n").rc == 0
    assert [view.producer_id for view in log.views] == [-1, -1]
    assert log.values == {0: [b"a", b"b"]}


def test_acks_0_waits_for_no_response(ottla: RunOttla, node: FakeNode) -> None:
    log = Log(node)
    assert ottla("produce", "orders", "--acks", 0, "--partition", 0, "--batch-size", 50, stdin=numbered(100)).rc == 0
    assert log.values[0] == [b"%d" % number for number in range(100)]


def test_memory_limit_holds_with_many_partitions(ottla: RunOttla, node: FakeNode) -> None:
    """Batches of many partitions grow in parallel. None is full when the limit is reached, and they are sent anyway."""
    node.handlers[MetadataRequest] = metadata_of(describe("orders", 50))
    log = Log(node)
    lines = b"".join(b"key%d:%d\n" % (number, number) for number in range(2000))
    said = ottla("produce", "orders", "--key-separator", ":", "--max-memory-bytes", 1000, stdin=lines)
    assert said.rc == 0, said.err
    assert sum(len(values) for values in log.values.values()) == 2000
    assert len(log.values) == 50


def test_topic_that_is_being_created_is_awaited(ottla: RunOttla, node: FakeNode) -> None:
    Log(node)
    later = metadata_of(describe("orders"))
    empty = metadata_of()
    answers = iter([empty, empty, metadata_of(describe("orders", leader=-1))])
    node.handlers[MetadataRequest] = lambda request, version: next(answers, later)(request, version)
    assert ottla("produce", "orders", *QUICK, stdin=b"a\n").rc == 0
    node.handlers[MetadataRequest] = empty
    absent = ottla("produce", "absent", "--max-block-ms", 20, *QUICK, stdin=b"a\n")
    assert (absent.rc, "topic absent does not exist" in absent.err) == (1, True)


def test_partitions_without_a_leader_are_named_with_what_to_do(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[MetadataRequest] = metadata_of(describe("orders", leader=-1))
    said = ottla("produce", "orders", "--max-block-ms", 20, *QUICK, stdin=b"a\n")
    assert said.rc == 1
    assert "orders-0 and orders-1 have no leader now (LEADER_NOT_AVAILABLE): `ottla topics describe --check` says" in said.err
