"""DescribeProducers: who has written to a partition, and who has a transaction open there."""

import pytest
from tests.support.logs.batches import T0
from tests.support.nodes.data_node import DataNode, append, end_transaction

from ottla.broker.handlers.transactions import describe_producers
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_producers import DescribeProducersRequest, PartitionResponse, ProducerState, TopicRequest


def ask(node: DataNode, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    [described] = node.ask(describe_producers, request, 0).topics
    assert described.name == topic
    partitions: list[PartitionResponse] = described.partitions
    return partitions


def test_idempotent_and_transactional_producers() -> None:
    node = DataNode()
    hosted = node.topic("t", 2)
    append(hosted, b"a", b"b", timestamp=T0, producer=(7, 2, 0))
    append(hosted, b"c", timestamp=T0 + 5, producer=(8, 0, 4), transactional=True)
    with_two, without = ask(node, "t", 0, 1)
    plain = ProducerState(producer_id=7, producer_epoch=2, last_sequence=1, last_timestamp=T0 + 1, coordinator_epoch=-1)
    in_transaction = ProducerState(
        producer_id=8,
        producer_epoch=0,
        last_sequence=4,
        last_timestamp=T0 + 5,
        coordinator_epoch=-1,
        current_txn_start_offset=2,
    )
    assert with_two.active_producers == [plain, in_transaction]
    assert (with_two.error_code, without.error_code, without.active_producers) == (0, 0, [])
    end_transaction(hosted, 8, commit=True)
    [_, ended] = ask(node, "t", 0)[0].active_producers
    assert (ended.current_txn_start_offset, ended.coordinator_epoch, ended.last_sequence) == (-1, 0, 4)


def test_follower_describes_its_producers() -> None:
    node = DataNode()
    append(node.topic("t"), b"a", producer=(7, 2, 0))
    node.follow("t")
    assert [each.producer_id for each in ask(node, "t", 0)[0].active_producers] == [7]


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("bad name", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("x" * 300, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_refusals(topic: str, index: int, code: int) -> None:
    node = DataNode()
    node.topic("t")
    [refused] = ask(node, topic, index)
    assert (refused.partition_index, refused.error_code, refused.active_producers) == (index, code, [])
    assert refused.error_message
