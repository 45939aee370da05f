"""A node whose partitions have no leader, for `ottla elect-leaders`."""

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import describe, metadata_of

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import MetadataRequest


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node never shows a new leader of partition 1: the command stops looking soon."""
    monkeypatch.setattr("ottla.cli.elect_leaders.SEE_LEADER_S", 0.3)


@pytest.fixture
def electing(node: FakeNode) -> FakeNode:
    """Two partitions without a leader. After an election broker 1 leads partition 0; partition 1 cannot be elected."""
    node.handlers[MetadataRequest] = metadata_of(describe("orders", leader=-1))

    def answer(request: ElectLeadersRequest, version: int) -> ElectLeadersResponse:
        if request.topic_partitions is None:
            return ElectLeadersResponse()
        elected = describe("orders", leader=-1)
        elected.partitions[0].leader_id = 1
        node.handlers[MetadataRequest] = metadata_of(elected)
        results = [
            PartitionResult(
                partition_id=number,
                error_code=ErrorCode.NONE if number == 0 else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
                error_message="none of them is there",
            )
            for each in request.topic_partitions
            for number in each.partitions
        ]
        return ElectLeadersResponse(replica_election_results=[ReplicaElectionResult(topic="orders", partition_result=results)])

    def offsets(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        found = ListOffsetsPartitionResponse(partition_index=0, offset=57, timestamp=-1, leader_epoch=3)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[found])])

    node.handlers[ElectLeadersRequest] = answer
    node.handlers[ListOffsetsRequest] = offsets
    return node
