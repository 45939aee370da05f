"""RemoveRaftVoter: error codes, effect at append, answer at commit."""

import pytest
from tests.support.raft.dynamic import asked_of, dynamic_leader, note_voters
from tests.support.raft.replicas import answer_in, key

from ottla.errors.codes import ErrorCode
from ottla.raft import effects as fx
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.resigned import Resigned
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


def remove(node_id: int, directory: int | None = None, cluster: str = "cluster") -> RemoveRaftVoterRequest:
    directory_id = key(directory or node_id).directory_id
    return RemoveRaftVoterRequest(cluster_id=cluster, voter_id=node_id, voter_directory_id=directory_id)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (remove(3, cluster="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (remove(9), ErrorCode.VOTER_NOT_FOUND),
        (remove(3, directory=8), ErrorCode.VOTER_NOT_FOUND),
        (RemoveRaftVoterRequest(cluster_id="cluster", voter_id=3), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(message: RemoveRaftVoterRequest, code: int) -> None:
    assert answer_in(asked_of(dynamic_leader(), message)).error_code == code


def test_static_quorums_cannot_change() -> None:
    replica = dynamic_leader(kraft_version=0)
    assert answer_in(asked_of(replica, remove(3))).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_voters_change_at_append_and_the_answer_comes_at_commit() -> None:
    replica = dynamic_leader()
    effects = asked_of(replica, remove(3))
    assert note_voters(replica, effects) == (1, 2)
    assert not any(isinstance(each, fx.Answer) for each in effects)
    assert answer_in(asked_of(replica, remove(2))).error_code == ErrorCode.REQUEST_TIMED_OUT, "one change at a time"
    end_offset = replica.log.end_offset
    replica.synced(end_offset, 5000)
    replica.follower_fetched(key(2), end_offset, 5000)
    assert answer_in(replica.tick(5000)).error_code == 0
    assert replica.voter_change is None


def test_leader_that_removed_itself_resigns_once_that_is_committed() -> None:
    replica = dynamic_leader()
    note_voters(replica, asked_of(replica, remove(1)))
    end_offset = replica.log.end_offset
    for voter in (2, 3):
        replica.follower_fetched(key(voter), end_offset, 5000)
    effects = replica.tick(5000)
    assert answer_in(effects).error_code == 0
    assert isinstance(replica.role, Resigned)


def test_change_that_is_not_committed_in_time_is_answered() -> None:
    replica = dynamic_leader()
    note_voters(replica, asked_of(replica, remove(3)))
    assert answer_in(replica.tick(7000)).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_leader_whose_removal_is_committed_after_the_answer_resigns() -> None:
    replica = dynamic_leader()
    note_voters(replica, asked_of(replica, remove(1)))
    assert answer_in(replica.tick(7000)).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert isinstance(replica.role, Leader)
    for voter in (2, 3):
        replica.follower_fetched(key(voter), replica.log.end_offset, 7000)
    replica.tick(7000)
    assert isinstance(replica.role, Resigned)
