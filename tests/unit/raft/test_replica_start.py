"""A voter of several that starts: it asks for pre-votes at once unless it finds a leader, and disturbs none."""

import pytest
from tests.support.raft.replicas import key, replica_of_three, sent_in, vote_answer

from ottla.errors.codes import ErrorCode
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.unattached import Unattached
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, LeaderIdAndEpoch, PartitionData
from ottla.wire.messages.vote import VoteResponse, VoteResponsePartitionData, VoteResponseTopicData


def answer_of_leader(error: int = ErrorCode.NONE, epoch: int = 2) -> FetchResponse:
    leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=epoch)
    return FetchResponse(
        responses=[FetchableTopicResponse(partitions=[PartitionData(error_code=error, current_leader=leader)])]
    )


def correlation(replica: Replica, node_id: int) -> int:
    return replica.connections._in_flight[node_id].correlation


@pytest.mark.parametrize("election", [None, ElectionState(4), ElectionState(4, -1, key(2))])
def test_voter_that_knows_no_leader_asks_for_pre_votes_at_once(election: ElectionState | None) -> None:
    replica = replica_of_three(election=election)
    epoch = replica.epoch
    assert isinstance(replica.role, Prospective)
    asked = {node: sent.message.topics[0].partitions[0] for node, sent in replica.connections._in_flight.items()}  # type: ignore[attr-defined]
    assert {node: each.pre_vote for node, each in asked.items()} == {2: True, 3: True}
    replica.received(2, correlation(replica, 2), vote_answer(epoch), 3)
    assert isinstance(replica.role, Candidate)
    assert replica.epoch == epoch + 1


def test_peers_that_do_not_listen_yet_are_asked_again_after_the_backoff() -> None:
    replica = replica_of_three()
    for node in (2, 3):
        replica.failed(node, correlation(replica, node), 1, is_refused=True)
    assert isinstance(replica.role, Prospective)
    assert replica.deadline_ms == 1 + replica.settings.retry_backoff_ms
    assert [each.destination.id for each in sent_in(replica.tick(replica.deadline_ms))] == [2, 3]


def test_lost_first_pre_vote_is_followed_by_the_usual_timeout() -> None:
    replica = replica_of_three()
    for node in (2, 3):
        replica.received(node, correlation(replica, node), vote_answer(0, granted=False), 5)
    assert isinstance(replica.role, Unattached)
    assert replica.role.election_deadline_ms == 5 + replica.settings.election_timeout_ms


def test_voter_that_has_forgotten_its_leader_follows_it_in_its_epoch() -> None:
    replica = replica_of_three()
    partition = VoteResponsePartitionData(error_code=ErrorCode.FENCED_LEADER_EPOCH, leader_id=3, leader_epoch=7)
    answer = VoteResponse(topics=[VoteResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])])
    replica.received(2, correlation(replica, 2), answer, 5)
    assert isinstance(replica.role, Follower)
    assert (replica.epoch, replica.leader_id) == (7, 3)


def test_voter_that_knows_a_leader_fetches_and_asks_for_no_votes() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    assert isinstance(replica.role, Follower)
    assert list(replica.connections._in_flight) == [3]


def asks_early(replica: Replica, now_ms: int = 10) -> None:
    """The leader's port refuses."""
    replica.failed(3, correlation(replica, 3), now_ms, is_refused=True)


def test_known_leader_that_is_not_up_is_not_waited_for() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    asks_early(replica)
    assert isinstance(replica.role, Prospective)
    assert replica.epoch == 2


def test_known_leader_that_has_resigned_is_not_waited_for() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    asked = sent_in(replica.received(3, correlation(replica, 3), answer_of_leader(ErrorCode.NOT_LEADER_OR_FOLLOWER), 10))
    assert isinstance(replica.role, Prospective)
    assert {each.destination.id for each in asked} == {2, 3}, "the old leader may grant it too, without a backoff"


def test_silent_leader_is_waited_for() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    replica.failed(3, correlation(replica, 3), 10)
    assert isinstance(replica.role, Follower)


def test_voter_asks_early_once() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    asks_early(replica)
    for voter in (2, 3):
        replica.received(voter, correlation(replica, voter), vote_answer(2, granted=False, leader_id=3), 20)
    assert isinstance(replica.role, Follower)
    assert replica.role.fetch_deadline_ms == replica.settings.fetch_timeout_ms, "the fetch timeout goes on"
    asks_early(replica, 30)
    assert isinstance(replica.role, Follower), "the address of the leader may be wrong"


def test_follower_that_has_fetched_leaves_a_resignation_to_end_quorum_epoch() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    replica.received(3, correlation(replica, 3), answer_of_leader(), 10)
    replica.received(3, correlation(replica, 3), answer_of_leader(ErrorCode.NOT_LEADER_OR_FOLLOWER), 20)
    assert isinstance(replica.role, Follower), "the leader names its successors in order"


def test_stopping_replica_and_observers_do_not_ask() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    under_way = correlation(replica, 3)
    replica.stop(5)
    replica.failed(3, under_way, 10, is_refused=True)
    assert isinstance(replica.role, Follower)
    assert isinstance(replica_of_three(7, can_be_voter=False).role, Unattached)
