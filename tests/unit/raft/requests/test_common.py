"""What requests between replicas share."""

from tests.support.raft.replicas import elected, key, replica_of_three

from ottla.errors.codes import ErrorCode
from ottla.raft.election import ElectionState
from ottla.raft.requests import common
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.unattached import Unattached

THERE = {"C": ("h3", 3)}


def test_requests_to_the_leader_are_refused_by_epoch_role_and_stop() -> None:
    replica = elected()
    assert common.refuse_leader_request(replica, 0) == ErrorCode.FENCED_LEADER_EPOCH
    assert common.refuse_leader_request(replica, 2) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert common.refuse_leader_request(replica, 1) is None
    replica.is_stopping = True
    assert common.refuse_leader_request(replica, 1) == ErrorCode.BROKER_NOT_AVAILABLE
    assert common.refuse_leader_request(replica_of_three(), 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_only_the_metadata_partition_is_accepted() -> None:
    assert common.only_partition([]) is None


def test_higher_epoch_is_followed_with_and_without_a_leader() -> None:
    replica = replica_of_three()
    assert common.learn_leader(replica, 3, 4, THERE, 0)
    assert isinstance(replica.role, Follower)
    assert common.learn_leader(replica, -1, 5, {}, 0)
    assert isinstance(replica.role, Unattached)
    assert replica.epoch == 5


def test_contradictions_are_refused() -> None:
    replica = replica_of_three(election=ElectionState(4, 2))
    assert not common.learn_leader(replica, 3, 4, THERE, 0), "the epoch has another leader"
    assert not common.learn_leader(replica, 1, 5, THERE, 0), "this replica does not lead"
    assert replica.leader_id == 2


def test_answers_of_older_epochs_change_nothing() -> None:
    replica = replica_of_three(election=ElectionState(4, 2))
    assert common.learn_from_answer(replica, 0, 3, 3, THERE, 0) is True
    assert replica.leader_id == 2
    assert common.learn_from_answer(replica, ErrorCode.BROKER_NOT_AVAILABLE, 2, 4, THERE, 0) is False
    assert common.learn_from_answer(replica, 0, 2, 4, THERE, 0) is None


def test_keys_of_other_voters_are_recognised() -> None:
    replica = replica_of_three()
    assert not common.is_for_another_voter(replica, -1, key(9).directory_id)
    assert common.is_for_another_voter(replica, 2, key(2).directory_id)
    assert common.is_for_another_voter(replica, 1, key(9).directory_id)
