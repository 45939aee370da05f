"""The first records of a leader's epoch."""

from tests.support.raft.replicas import THREE, key

from ottla.raft import control
from ottla.raft.voter_history import VoterHistory, first_records
from ottla.raft.voters import Voter, VoterSet
from ottla.records.control import ControlType

ME = key(1)
HERE, THERE = {"C": ("h1", 1)}, {"C": ("h1", 4711)}


def history(offset: int) -> VoterHistory:
    found = VoterHistory(VoterSet())
    found.note(offset, control.kraft_version(1))
    found.note(offset, control.kraft_voters(VoterSet([Voter(ME, HERE)])))
    return found


def test_static_quorum_writes_no_voters() -> None:
    assert [each.type for each in first_records(ME, (ME,), VoterHistory(THREE), THERE)] == [ControlType.LEADER_CHANGE]


def test_voters_of_the_first_snapshot_are_written_once() -> None:
    kinds = [ControlType.LEADER_CHANGE, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]
    assert [each.type for each in first_records(ME, (ME,), history(-1), HERE)] == kinds
    assert [each.type for each in first_records(ME, (ME,), history(0), HERE)] == kinds[:1]


def test_new_endpoints_of_the_leader_are_written() -> None:
    leader_change, voters = first_records(ME, (ME,), history(0), THERE)
    assert leader_change.type == ControlType.LEADER_CHANGE
    assert control.read_kraft_voters(voters) == VoterSet([Voter(ME, THERE)])
