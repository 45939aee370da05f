"""What only a cluster of several nodes can show of Ottla's Admin: elections, reassignments, the quorum, lost brokers."""

import pytest
from tests.support.peers.leaders import await_leader, leaders, make_replicated
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.three_nodes import NODES, RACKS, ThreeNodes

from ottla import Admin, TopicPartition
from ottla.client.admin.reassignments import PartitionReassignment
from ottla.errors import (
    BrokerIdNotRegisteredError,
    ElectionNotNeededError,
    InvalidReplicaAssignmentError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)


def test_quorum_and_cluster_have_three_nodes(nodes: ThreeNodes, face: Faces) -> None:
    admin = face.admin(nodes.bootstrap)
    quorum = admin.describe_metadata_quorum()
    assert {voter.id for voter in quorum.voters} == set(NODES)
    assert quorum.leader_id in NODES
    assert quorum.observers == ()
    assert all(voter.log_end_offset > 0 for voter in quorum.voters)
    cluster = admin.describe_cluster()
    assert {node.id: (node.port, node.rack) for node in cluster.nodes.values()} == {
        node: (nodes.ports[node], RACKS[node]) for node in NODES
    }


def test_elections(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3], 1: [2, 3, 1]})
    elections = face.admin(nodes.bootstrap)
    for kind in ("preferred", "unclean"):
        found = elections.elect_leaders(kind, [(topic, 0), (topic, 9)])
        assert isinstance(found.errors[TopicPartition(topic, 0)], ElectionNotNeededError)
        assert isinstance(found.errors[TopicPartition(topic, 9)], UnknownTopicOrPartitionError)
    elections.alter_partition_reassignments({(topic, 0): [3, 2, 1]}).raise_first()
    await_true(lambda: elections.list_partition_reassignments() == {}, "the new order of replicas")
    assert leaders(admin, topic) == {0: 1, 1: 2}
    assert TopicPartition(topic, 0) in elections.elect_leaders("preferred")  # of all partitions that need it
    await_leader(admin, topic, 0, 3)


def test_reassignment_is_listed_and_cancelled(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, {0: [1], 1: [3]})
    reassigning = face.admin(nodes.bootstrap)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    found = reassigning.alter_partition_reassignments({first: None, second: [9], (topic, 7): [1]})
    assert isinstance(found.errors[first], NoReassignmentInProgressError)
    assert isinstance(found.errors[second], InvalidReplicaAssignmentError)
    assert isinstance(found.errors[TopicPartition(topic, 7)], UnknownTopicOrPartitionError)
    nodes.kill(2)  # a replica there cannot catch up: the reassignment stays under way
    reassigning.alter_partition_reassignments({first: [2], second: [3, 2]}).raise_first()
    assert reassigning.list_partition_reassignments([first]) == {first: PartitionReassignment((2, 1), (2,), (1,))}
    assert set(reassigning.list_partition_reassignments()) == {first, second}
    reassigning.alter_partition_reassignments({first: None}).raise_first()
    assert set(reassigning.list_partition_reassignments()) == {second}
    nodes.start(2)
    await_true(lambda: reassigning.list_partition_reassignments() == {}, "the reassignment to end")
    described = {each.partition: each.replicas for each in reassigning.describe_topics([topic])[topic].partitions}
    assert described == {0: (1,), 1: (3, 2)}


def test_lost_broker_is_fenced_and_can_be_unregistered(nodes: ThreeNodes, face: Faces) -> None:
    admin = face.admin(nodes.bootstrap)
    with pytest.raises(BrokerIdNotRegisteredError):
        admin.unregister_broker(99)
    nodes.kill(3)

    def registered() -> dict[int, bool]:
        return {node.id: node.is_fenced for node in admin.describe_cluster(include_fenced_brokers=True).nodes.values()}

    await_true(lambda: registered() == {1: False, 2: False, 3: True}, "node 3 to be fenced")
    assert set(admin.describe_cluster().nodes) == {1, 2}
    admin.unregister_broker(3)
    await_true(lambda: registered() == {1: False, 2: False}, "node 3 to be gone")
    nodes.start(3)
    await_true(lambda: registered() == dict.fromkeys(NODES, False), "node 3 to be back")
