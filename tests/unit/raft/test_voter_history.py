"""VoterHistory: the voters and kraft.version in effect at an offset."""

from ottla.ids import Uuid
from ottla.raft import control
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import ReplicaKey, Voter, VoterSet, static_voters

STATIC = static_voters([(1, "h", 1)], "C")
FIRST = VoterSet([Voter(ReplicaKey(1, Uuid(b"1" * 16)), {"C": ("h", 1)})])
SECOND = FIRST.with_voter(Voter(ReplicaKey(2, Uuid(b"2" * 16)), {"C": ("h", 2)}))


def test_static_voters_apply_without_control_records() -> None:
    history = VoterHistory(STATIC)
    assert history.voters == STATIC
    assert history.kraft_version == 0
    assert not history.is_only_in_snapshot
    assert history.voters_before(100) == STATIC
    assert history.kraft_version_before(100) == 0


def test_voters_records_apply_from_their_offset_on() -> None:
    history = VoterHistory(STATIC)
    history.note(-1, control.kraft_version(1))
    history.note(-1, control.kraft_voters(FIRST))
    assert history.is_only_in_snapshot
    history.note(10, control.kraft_voters(SECOND))
    assert not history.is_only_in_snapshot
    assert history.voters == SECOND
    assert history.voters_before(10) == FIRST, "the record at 10 is not below 10"
    assert history.voters_before(11) == SECOND
    assert history.voters_before(0) == FIRST
    assert history.kraft_version_before(0) == 1


def test_truncation_drops_the_records_after_the_cut() -> None:
    history = VoterHistory(STATIC)
    history.note(3, control.kraft_version(1))
    history.note(4, control.kraft_voters(FIRST))
    history.note(9, control.kraft_voters(SECOND))
    history.truncate_to(9)
    assert history.voters == FIRST
    history.truncate_to(3)
    assert history.voters == STATIC
    assert history.kraft_version == 0


def test_other_control_records_leave_the_voters_unchanged() -> None:
    history = VoterHistory(STATIC)
    history.note(0, control.leader_change(1, FIRST, (ReplicaKey(1),)))
    assert history.voters == STATIC
