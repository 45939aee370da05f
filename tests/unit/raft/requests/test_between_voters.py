"""What the requests between voters share: refusals of the whole request, the leader in responses."""

import pytest
from tests.support.raft.replicas import elected, replica_of_three

from ottla.errors.codes import ErrorCode
from ottla.raft.replica import Inbound
from ottla.raft.requests.begin_quorum_epoch import _CLASSES
from ottla.raft.requests.between_voters import learn_from_response, refuse, response_of
from ottla.wire.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochRequestPartitionData,
    BeginQuorumEpochRequestTopicData,
    BeginQuorumEpochResponse,
)


def request(cluster: str | None = "cluster", topic: str = "__cluster_metadata", partitions: int = 1) -> BeginQuorumEpochRequest:
    asked = [BeginQuorumEpochRequestPartitionData() for _ in range(partitions)]
    return BeginQuorumEpochRequest(
        cluster_id=cluster, topics=[BeginQuorumEpochRequestTopicData(topic_name=topic, partitions=asked)]
    )


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (request(), None),
        (request(cluster=None), None),
        (request(cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (request(topic="t"), ErrorCode.INVALID_REQUEST),
        (request(partitions=2), ErrorCode.INVALID_REQUEST),
    ],
)
def test_only_requests_about_this_clusters_metadata_log_are_taken(message: BeginQuorumEpochRequest, code: int | None) -> None:
    assert refuse(replica_of_three(), message) == code


def test_responses_name_the_leader_and_since_version_1_its_address() -> None:
    replica = elected()
    for version, addresses in ((0, []), (1, [(1, "h1", 1)])):
        response = response_of(_CLASSES, replica, Inbound("t", request(), version, "C"), None)
        (partition,) = response.topics[0].partitions
        assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 1)
        assert [(each.node_id, each.host, each.port) for each in response.node_endpoints] == addresses


def test_response_of_a_higher_epoch_is_followed() -> None:
    leader, replica = elected(), replica_of_three(2)
    response = response_of(_CLASSES, leader, Inbound("t", request(), 1, "C"), None)
    told, handled = learn_from_response(replica, response, 0)
    assert (told.leader_id, handled) == (1, True)
    assert (replica.leader_id, replica.epoch) == (1, 1)


def test_refused_response_is_a_failure() -> None:
    response = BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    assert learn_from_response(replica_of_three(), response, 0)[1] is False
