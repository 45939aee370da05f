"""Listing and describing topics, in one response or in several."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode, all_versions

from ottla.client.admin.acl_types import AclOperation
from ottla.client.admin.topic_descriptions import described_topics
from ottla.errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from ottla.ids import Uuid
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def test_topics_are_described_by_name_and_id(admin: Any, name: str, create: Callable[..., Any]) -> None:
    topic_id = create({name: 3})[name].id
    missing = Uuid(b"no-such-topic-id")
    results = admin.describe_topics([name, topic_id, "missing-topic", missing])
    assert list(results) == [name, topic_id, "missing-topic", missing]
    by_name, by_id = results[name], results[topic_id]
    assert by_name.name == by_id.name == name
    assert by_name.id == by_id.id == topic_id
    assert [each.partition for each in by_name.partitions] == [0, 1, 2]
    assert [(each.leader, each.replicas, each.isr, each.offline) for each in by_id.partitions] == [(1, (1,), (1,), ())] * 3
    assert by_name.authorized_operations is by_id.authorized_operations is None
    assert isinstance(results.errors["missing-topic"], UnknownTopicOrPartitionError)
    assert isinstance(results.errors[missing], UnknownTopicIdError)


def test_large_topics_come_in_several_responses(admin: Any, name: str, create: Callable[..., Any]) -> None:
    names = [f"{name}-{letter}" for letter in "cab"]
    create(dict.fromkeys(names, 5))
    results = admin.describe_topics([*names, "missing-topic"], partitions_per_request=2)
    assert [[each.partition for each in results[each].partitions] for each in names] == [[0, 1, 2, 3, 4]] * 3
    assert list(results.errors) == ["missing-topic"]


def test_authorized_operations_are_told_if_asked_for(admin: Any, name: str, create: Callable[..., Any]) -> None:
    topic_id = create({name: 1})[name].id
    results = admin.describe_topics([name, topic_id], include_authorized_operations=True)
    for each in results.values():
        assert {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE} <= each.authorized_operations
        assert AclOperation.CLUSTER_ACTION not in each.authorized_operations


def test_internal_topics_are_listed_if_asked_for(admin: Any, name: str, create: Callable[..., Any]) -> None:
    create({name: 1})
    admin.alter_consumer_group_offsets(name, {(name, 0): 1}).raise_first()
    assert "__consumer_offsets" not in admin.list_topics()
    everything = admin.list_topics(include_internal=True)
    assert everything["__consumer_offsets"].is_internal
    assert not everything[name].is_internal
    assert everything[name].partitions == 1
    assert list(everything) == sorted(everything)


def test_older_broker_is_asked_for_metadata(scripted: Any, node: FakeNode) -> None:
    node.served = all_versions(DescribeTopicPartitions=None)
    partitions = [MetadataResponsePartition(partition_index=index, leader_id=-1) for index in (1, 0)]
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        topics=[MetadataResponseTopic(name="orders", partitions=partitions), MetadataResponseTopic(name="b", error_code=3)],
    )
    node.handlers[MetadataRequest] = lambda request, version: answer
    results = scripted.describe_topics(["orders", "b"])
    assert [(each.partition, each.leader) for each in results["orders"].partitions] == [(0, None), (1, None)]
    assert isinstance(results.errors["b"], UnknownTopicOrPartitionError)


def test_found_topics_are_described() -> None:
    partitions = [MetadataResponsePartition(partition_index=index, leader_id=index - 1) for index in (1, 0)]
    orders = MetadataResponseTopic(name="orders", is_internal=True, partitions=partitions)
    found = described_topics({"orders": orders, "refused": MetadataResponseTopic(name="refused", error_code=29)})
    assert list(found) == ["orders"]
    assert found["orders"].is_internal
    assert [(each.partition, each.leader) for each in found["orders"].partitions] == [(0, None), (1, 0)]


def test_broker_whose_cursor_does_not_move_cannot_keep_the_client(scripted: Any, node: FakeNode) -> None:
    cursor = DescribeTopicPartitionsResponseCursor(topic_name="orders", partition_index=0)
    node.handlers[DescribeTopicPartitionsRequest] = lambda request, version: DescribeTopicPartitionsResponse(next_cursor=cursor)
    assert list(scripted.describe_topics(["orders"]).errors) == ["orders"]
    assert len(node.asked_for(DescribeTopicPartitionsRequest)) == 2


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda admin: admin.describe_topics([""]), "topics: a topic's name must not be empty"),
        (lambda admin: admin.describe_topics(["a"], partitions_per_request=0), "partitions_per_request is 0"),
    ],
)
def test_bad_argument_is_named(scripted: Any, call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call(scripted)
