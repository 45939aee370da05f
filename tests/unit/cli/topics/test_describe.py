"""What `topics describe` asks the cluster: also with brokers that find no controller."""

import json

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.topics import describe
from ottla.cli.topics.describe import TopicView
from ottla.client.admin.reassignments import PartitionReassignment
from ottla.client.admin.topic_descriptions import PartitionDescription, TopicDescription
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse, DescribeConfigsResult
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def configs(request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name)
            for each in request.resources
        ]
    )


@pytest.mark.parametrize("answer", [None, ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)])
def test_topics_are_described_without_a_controller(
    ottla: RunOttla, node: FakeNode, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    monkeypatch.setattr(describe, "ANSWER_S", 0.1)
    node.handlers[DescribeConfigsRequest] = configs
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: answer
    said = ottla("topics", "describe", "orders", "--json")
    assert said.rc == 0, said.err
    assert said.err == (
        "ottla: no active controller: what is shown is the last state that broker 1 knew; start a majority of the controllers\n"
    )
    assert ottla("topics", "describe", "orders", "--check").rc == 1
    assert [each["state"] for each in json.loads(said.out)[0]["partitions"]] == ["ok", "ok"]
    assert len(node.asked_for(ListPartitionReassignmentsRequest)) >= 1


def test_controller_that_refuses_is_a_controller(ottla: RunOttla, node: FakeNode) -> None:
    node.handlers[DescribeConfigsRequest] = configs
    refusal = ListPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    node.handlers[ListPartitionReassignmentsRequest] = lambda request, version: refusal
    said = ottla("topics", "describe", "orders", "--check")
    assert (said.rc, said.err) == (0, "")


def test_replicas_that_are_being_added_need_not_be_in_sync() -> None:
    partition = PartitionDescription(0, 1, 0, (4, 1, 2), (1, 2), ())
    topic = TopicDescription("orders", Uuid(bytes(16)), False, (partition,))
    moving = {TopicPartition("orders", 0): PartitionReassignment((4, 1, 2), (4,), ())}
    view = TopicView(topic, {}, frozenset({1, 2, 4}), topic.partitions, moving)
    assert (view.replicas_due(partition), view.replication_factor) == (2, 2)
    assert view.diagnosis(partition).state == "reassigning"
    still = TopicView(topic, {}, frozenset({1, 2, 4}), topic.partitions, {})
    assert (still.replicas_due(partition), still.diagnosis(partition).state) == (3, "under-replicated")
