"""The quorum's steps: the role after a start, the election of a single voter, and the high watermark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import BrokenInvariant
from ottla.ids import Uuid
from ottla.raft import control
from ottla.raft.election import ElectionState
from ottla.raft.quorum import Quorum, election_due, resign, start, synced
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import ReplicaKey, Voter, VoterSet, static_voters
from ottla.records.control import ControlType

ME = ReplicaKey(1, Uuid(b"1" * 16))
OTHER, THIRD = ReplicaKey(2, Uuid(b"2" * 16)), ReplicaKey(3, Uuid(b"3" * 16))
HERE = {"CONTROLLER": ("localhost", 9093)}
ALONE = VoterSet([Voter(ME, HERE)])
THREE = VoterSet(Voter(key, HERE) for key in (ME, OTHER, THIRD))


def history(voters: VoterSet = ALONE, offset: int = 0) -> VoterHistory:
    found = VoterHistory(VoterSet())
    found.note(offset, control.kraft_version(1))
    found.note(offset, control.kraft_voters(voters))
    return found


@pytest.mark.parametrize(
    ("election", "last_epoch", "role"),
    [
        (None, 0, Unattached(0)),
        (None, 4, Unattached(4)),
        (ElectionState(2, 1), 4, Unattached(4)),
        (ElectionState(4, 1), 4, Resigned(4, ME)),
        (ElectionState(5, -1, ME), 4, Candidate(5, ME, (ME,))),
        (ElectionState(5, -1, ReplicaKey(1)), 4, Candidate(5, ME, (ME,))),
        (ElectionState(5, -1, OTHER), 4, Unattached(5, voted=OTHER)),
        (ElectionState(5, 2), 5, Unattached(5, leader_id=2)),
    ],
)
def test_role_after_a_start_follows_quorum_state_or_a_newer_log(
    election: ElectionState | None, last_epoch: int, role: object
) -> None:
    found = start(ME, ALONE, election, last_epoch).role
    assert (type(found), found) == (type(role), role)


@pytest.mark.parametrize(
    ("election", "epoch"),
    [(None, 4), (ElectionState(3, 1), 4), (ElectionState(3, -1, OTHER), 4), (ElectionState(5, 2), 6), (ElectionState(5, 1), 6)],
)
def test_the_only_voter_leads_at_once_in_a_new_epoch(election: ElectionState | None, epoch: int) -> None:
    step = election_due(start(ME, ALONE, election, 3), history(), 17)
    assert step.quorum.role == Leader(epoch, ME, 17, (ME,))
    assert step.persist == ElectionState(epoch, 1), "one write, and it names the leader"
    assert [each.type for each in step.controls] == [ControlType.LEADER_CHANGE]
    assert step.quorum.leader_id == 1
    assert step.quorum.high_watermark is None, "nothing of the epoch is on disk yet"


def test_a_restarted_candidate_wins_in_the_epoch_it_voted_in() -> None:
    step = election_due(start(ME, ALONE, ElectionState(7, -1, ME), 3), history(), 17)
    assert step.quorum.role == Leader(7, ME, 17, (ME,))
    assert step.persist == ElectionState(7, 1)


def test_one_of_three_voters_becomes_prospective_and_keeps_the_epoch() -> None:
    step = election_due(start(ME, THREE, ElectionState(5, 2), 3), history(THREE), 17)
    assert step.quorum.role == Prospective(5, (ME,), leader_id=2)
    assert step.persist is None
    assert step.controls == ()


def test_a_majority_of_voters_wins_and_other_replicas_do_not_count() -> None:
    prospective = Prospective(5, (ME,)).granted_by(ReplicaKey(9, Uuid(b"9" * 16)))
    assert not prospective.would_win(THREE)
    assert prospective.granted_by(OTHER).would_win(THREE)
    candidate = Candidate(6, ME, (ME,)).granted_by(ReplicaKey(2, Uuid(b"x" * 16)))
    assert not candidate.has_won(THREE), "another directory is another voter"
    assert candidate.granted_by(THIRD).granted_by(THIRD).has_won(THREE)


def test_an_observer_never_stands_for_election() -> None:
    quorum = start(ReplicaKey(1, Uuid(b"x" * 16)), ALONE, None, 0)
    assert election_due(quorum, history(), 0).quorum == quorum


def test_the_first_leader_writes_the_voters_of_the_first_snapshot() -> None:
    step = election_due(start(ME, ALONE, None, 0), history(offset=-1), 0)
    assert [each.type for each in step.controls] == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]


def test_a_leader_with_new_endpoints_writes_the_voters_again() -> None:
    there = {"CONTROLLER": ("localhost", 1234)}
    step = election_due(start(ME, ALONE, None, 0), history(), 5, there)
    assert [each.type for each in step.controls] == [ControlType.LEADER_CHANGE, ControlType.KRAFT_VOTERS]
    assert control.read_kraft_voters(step.controls[1]) == step.quorum.voters == VoterSet([Voter(ME, there)])
    again = election_due(start(ME, ALONE, None, 0), history(), 5, HERE)
    assert [each.type for each in again.controls] == [ControlType.LEADER_CHANGE]


def test_a_static_quorum_writes_no_voters() -> None:
    static = static_voters([(1, "h", 1)], "CONTROLLER")
    step = election_due(start(ME, static, None, 0), VoterHistory(static), 0, HERE)
    assert [each.type for each in step.controls] == [ControlType.LEADER_CHANGE]
    assert synced(step.quorum, ME, 1).high_watermark == 1, "its voter is this replica, although it names no directory"


def leading(voters: VoterSet, epoch_start_offset: int) -> Quorum:
    return Quorum(ME, Leader(3, ME, epoch_start_offset, (ME,)), voters)


def test_a_single_voter_commits_what_it_has_synced() -> None:
    quorum = leading(ALONE, 10)
    assert synced(quorum, ME, 10).high_watermark is None, "the epoch's first record is not on disk"
    quorum = synced(quorum, ME, 11)
    assert quorum.high_watermark == 11
    assert synced(quorum, ME, 10).high_watermark == 11, "it never goes back"


def test_records_are_committed_once_a_majority_has_synced_them() -> None:
    quorum = synced(leading(THREE, 10), ME, 20)
    assert quorum.high_watermark is None
    quorum = synced(quorum, OTHER, 10)
    assert quorum.high_watermark is None, "older records are not counted before one of this epoch is everywhere"
    assert synced(quorum, OTHER, 15).high_watermark == 15
    assert synced(quorum, ReplicaKey(2, Uuid(b"x" * 16)), 15).high_watermark is None, "another directory is another replica"


@given(st.lists(st.tuples(st.sampled_from([ME, OTHER, THIRD]), st.integers(0, 50)), max_size=30))
def test_high_watermark_follows_a_majority_and_never_goes_back(reports: list[tuple[ReplicaKey, int]]) -> None:
    quorum, ends, before = leading(THREE, 5), dict.fromkeys([ME, OTHER, THIRD], 0), -1
    for replica, offset in reports:
        quorum = synced(quorum, replica, offset)
        ends[replica] = max(ends[replica], offset)
        mark = -1 if quorum.high_watermark is None else quorum.high_watermark
        assert mark >= before
        assert mark <= sorted(ends.values())[1]
        assert mark == -1 or mark > 5
        before = mark


def test_a_resigned_leader_has_the_role_of_a_restarted_one() -> None:
    quorum = resign(leading(ALONE, 10))
    assert quorum.role == Resigned(3, ME)
    assert resign(quorum) == quorum
    assert synced(quorum, ME, 50) == quorum
    assert start(ME, ALONE, quorum.role.election, 3).role == quorum.role


def test_a_leader_cannot_stand_again() -> None:
    with pytest.raises(BrokenInvariant):
        election_due(leading(ALONE, 10), history(), 10)
