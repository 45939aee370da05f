"""What DescribeQuorum reports: progress in wall-clock times, observers, and nothing from a replica that does not lead."""

from tests.support.raft.replicas import elected, key, replica_of_three

from ottla.broker.runtime.quorum_facts import ReplicaFacts, facts_of
from ottla.ids import ZERO_UUID


def test_leader_reports_voters_and_observers() -> None:
    replica = elected()
    replica.follower_fetched(key(2), 1, 6000)
    replica.follower_fetched(key(8), 0, 6500)
    facts = facts_of(replica, 1_000_000, 7000)
    assert (facts.leader_id, facts.leader_epoch) == (1, 1)
    assert facts.voters == [
        ReplicaFacts(1, ZERO_UUID, 1, 1_000_000, 1_000_000),
        ReplicaFacts(2, ZERO_UUID, 1, 999_000, 999_000),
        ReplicaFacts(3, ZERO_UUID, -1, -1, -1),
    ]
    assert facts.observers == [ReplicaFacts(8, key(8).directory_id, 0, 999_500, -1)]
    assert facts.endpoints[2] == {"C": ("h2", 2)}


def test_others_know_the_leader_alone() -> None:
    facts = facts_of(replica_of_three(), 1_000_000, 0)
    assert (facts.leader_id, facts.high_watermark, list(facts.voters)) == (-1, -1, [])
