"""What roles do by themselves."""

from tests.support.raft.replicas import elected, key, replica_of_three, sent_in, vote_answer

from ottla.raft.election import ElectionState
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.prospective import Prospective
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest


def test_lost_pre_vote_returns_to_the_known_leader() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    asked = {each.destination.id: each for each in sent_in(replica.tick(2000))}
    assert isinstance(replica.role, Prospective)
    for voter in (2, 3):
        replica.received(voter, asked[voter].correlation, vote_answer(2, granted=False, leader_id=3), 2000)
    assert isinstance(replica.role, Follower)
    assert replica.role.leader_id == 3


def test_candidate_without_a_majority_waits_for_its_timeout_then_asks_again() -> None:
    replica = replica_of_three(election=ElectionState(4, -1, key(1)))
    assert isinstance(replica.role, Candidate)
    replica.tick(999)
    assert isinstance(replica.role, Candidate)
    replica.tick(1000)
    assert isinstance(replica.role, Prospective)
    assert replica.epoch == 4


def test_follower_asks_bootstrap_servers_while_its_leader_fails() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    correlation = replica.connections._in_flight[3].correlation
    (send,) = sent_in(replica.failed(3, correlation, 10))
    assert send.destination.host == "h9"
    assert sent_in(replica.tick(11)) == [], "one Fetch at a time"


def test_leader_tells_only_voters_that_have_not_fetched() -> None:
    replica = elected()
    replica.follower_fetched(key(2), 1, 6500)
    told = [each for each in sent_in(replica.tick(7000)) if isinstance(each.message, BeginQuorumEpochRequest)]
    assert 2 not in {each.destination.id for each in told}
