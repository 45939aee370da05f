"""What voter changes share: refusals by state, and the end of a change when the leader is another one."""

from tests.support.raft.dynamic import dynamic_leader
from tests.support.raft.replicas import answer_in, key

from ottla.errors.codes import ErrorCode
from ottla.raft import control
from ottla.raft.requests.voter_changes import VoterChange, refuse_change
from ottla.raft.voters import Voter, VoterSet


def test_one_change_at_a_time_and_only_after_the_last_is_committed() -> None:
    replica = dynamic_leader()
    assert refuse_change(replica) is None
    replica.history.note(replica.log.end_offset, control.kraft_voters(VoterSet([Voter(key(1), {})])))
    refused = refuse_change(replica)
    assert refused is not None
    assert refused[0] == ErrorCode.REQUEST_TIMED_OUT


def test_change_ends_with_the_leadership() -> None:
    replica = dynamic_leader()
    replica.voter_change = VoterChange("asked", 81, 9000, offset=99)
    assert answer_in(replica.stop(5000)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert replica.voter_change is None
