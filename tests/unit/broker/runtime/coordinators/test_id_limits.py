"""ottla.max.groups, .transactional.ids and .producer.ids: what clients get beyond them, and that known ids go on."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic

from ottla.errors.codes import ErrorCode
from ottla.records.builder import build_batch
from ottla.records.kernels import Record
from ottla.testing import Broker
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

LIMITS = {
    "ottla.max.groups": 3,
    "ottla.max.transactional.ids": 3,
    "ottla.max.producer.ids": 2,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config=LIMITS) as broker:
        make_topic(broker.bootstrap_servers, "topic")
        with RawClient.to(broker.bootstrap_servers) as client:
            for key_type in (0, 1):
                client.request(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["x"]), 4)
            for number in range(3):
                assert committed(client, f"group-{number}") == 0
        yield broker


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient.to(broker.bootstrap_servers) as client:
        yield client


def committed(client: RawClient, group_id: str) -> int:
    """The error code of a commit without a member. Twice in version 8: the second time on the fast path."""
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name="topic", partitions=[partition])
    request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, topics=[topic])
    codes = {client.request(request, version).topics[0].partitions[0].error_code for version in (7, 8, 8)}
    assert len(codes) == 1
    return int(codes.pop())


def test_a_commit_that_would_create_a_group_is_refused(broker: Broker, client: RawClient) -> None:
    for number in range(20):
        assert committed(client, f"stranger-{number}") == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert committed(client, "group-0") == 0
    lines = [line for line in broker.log_lines if " WARNING " in line and "ottla.max.groups is 3" in line]
    assert len(lines) == 1


def test_members_of_new_groups_are_refused(client: RawClient) -> None:
    def join(group_id: str) -> Any:
        protocols = [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")]
        return client.request(
            JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=protocols,
            ),
            3,
        ).error_code

    assert join("stranger") == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert join("group-1") == 0
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="stranger",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["topic"],
        topic_partitions=[],
    )
    answer = client.request(heartbeat, 1)
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert "ottla.max.groups" in answer.error_message
    heartbeat.group_id = "group-2"
    assert client.request(heartbeat, 1).error_code == 0


def test_a_commit_in_a_transaction_that_would_create_a_group_is_refused(client: RawClient) -> None:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = TxnOffsetCommitRequestTopic(name="topic", partitions=[partition])
    producer = client.request(InitProducerIdRequest(transactional_id="committing", transaction_timeout_ms=60_000), 3)
    request = TxnOffsetCommitRequest(
        transactional_id="committing",
        group_id="stranger",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        topics=[topic],
    )
    answer = client.request(request, 5)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_new_transactional_id_is_refused(broker: Broker, client: RawClient) -> None:
    def initialised(transactional_id: str) -> int:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        return int(client.request(request, 3).error_code)

    assert [initialised(name) for name in ("one", "two")] == [0, 0]
    initialised("three")  # unless the test above has taken its place
    for number in range(20):
        assert initialised(f"stranger-{number}") == ErrorCode.POLICY_VIOLATION
    assert initialised("one") == 0
    lines = [line for line in broker.log_lines if " WARNING " in line and "ottla.max.transactional.ids is 3" in line]
    assert len(lines) == 1


def test_a_new_producer_is_refused_while_all_others_are_active(broker: Broker, client: RawClient) -> None:
    def produced(producer_id: int, sequence: int) -> tuple[int, str | None]:
        batch = build_batch(
            [Record(0, 1_700_000_000_000, None, b"v", ())], producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )
        data = TopicProduceData(name="topic", partition_data=[PartitionProduceData(index=0, records=bytes(batch))])
        answer = client.request(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=[data]), 9)
        partition = answer.responses[0].partition_responses[0]
        return partition.error_code, partition.error_message

    assert [produced(number, 0)[0] for number in (1000, 1001)] == [0, 0]
    code, message = produced(1002, 0)
    assert code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert "ottla.max.producer.ids is 2" in str(message)
    assert produced(1000, 1)[0] == produced(-1, -1)[0] == 0
