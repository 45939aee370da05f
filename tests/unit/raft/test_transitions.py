"""The table of role transitions, and the rules that all of them obey."""

import pytest

from ottla.errors import BrokenInvariant
from ottla.ids import Uuid
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached
from ottla.raft.transitions import TRANSITIONS, Role, transition
from ottla.raft.voters import ReplicaKey

ME = ReplicaKey(1, Uuid(b"1" * 16))
OTHER = ReplicaKey(2, Uuid(b"2" * 16))


def roles(epoch: int) -> list[Role]:
    return [
        Unattached(epoch),
        Prospective(epoch, (ME,)),
        Candidate(epoch, ME, (ME,)),
        Leader(epoch, ME, 0, (ME,)),
        Follower(epoch, 2, {}),
        Resigned(epoch, ME),
    ]


@pytest.mark.parametrize("old", roles(5), ids=lambda role: type(role).__name__)
@pytest.mark.parametrize("new", roles(6), ids=lambda role: type(role).__name__)
def test_only_transitions_in_the_table_are_allowed(old: Role, new: Role) -> None:
    allowed = type(new) in TRANSITIONS[type(old)] and not isinstance(new, Leader)  # a leader never raises the epoch
    if allowed:
        assert transition(old, new) is new
    else:
        with pytest.raises(BrokenInvariant):
            transition(old, new)


@pytest.mark.parametrize("old", roles(5), ids=lambda role: type(role).__name__)
@pytest.mark.parametrize("new", roles(4), ids=lambda role: type(role).__name__)
def test_epochs_never_go_back(old: Role, new: Role) -> None:
    with pytest.raises(BrokenInvariant):
        transition(old, new)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (Unattached(5, voted=OTHER), Unattached(5, voted=ME), "votes once"),
        (Unattached(5, voted=OTHER), Unattached(5), "not forgotten"),
        (Unattached(5, leader_id=2), Unattached(5, leader_id=3), "one leader"),
        (Unattached(5, leader_id=2), Unattached(5), "one leader"),
        (Candidate(5, ME, (ME,)), Unattached(5), "not forgotten"),
        (Leader(5, ME, 0, (ME,)), Unattached(5), "one leader"),
        (Resigned(5, ME), Unattached(5, voted=OTHER), "one leader"),
        (Prospective(5, (ME,)), Candidate(7, ME, (ME,)), "by one"),
        (Prospective(5, (ME,)), Candidate(5, ME, (ME,)), "by one"),
    ],
)
def test_transitions_that_break_an_election_rule_are_refused(old: Role, new: Role, reason: str) -> None:
    with pytest.raises(BrokenInvariant, match=reason):
        transition(old, new)


def test_a_vote_may_be_dropped_once_the_leader_is_known() -> None:
    assert transition(Unattached(5, voted=OTHER), Unattached(5, leader_id=2))
    assert transition(Candidate(5, ME, (ME,)), Leader(5, ME, 9, (ME,)))
