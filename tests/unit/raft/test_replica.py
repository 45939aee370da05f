"""The replica's steps: the role after a start, a single voter, check-quorum, stopping, observers."""

import pytest
from tests.support.raft.memory_log import Entry, MemoryLog
from tests.support.raft.replicas import carry_out, elected, key, replica_of_three, sent_in

from ottla.errors import BrokenInvariant
from ottla.raft import control
from ottla.raft import effects as fx
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica, first_role
from ottla.raft.roles.candidate import Candidate
from ottla.raft.roles.follower import Follower
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective
from ottla.raft.roles.resigned import Resigned
from ottla.raft.roles.unattached import Unattached
from ottla.raft.settings import RaftSettings
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import ReplicaKey, Voter, VoterSet, static_voters

ME, OTHER = key(1), key(2)
HERE = {"C": ("h1", 1)}


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
        (ElectionState(5, 2, ME), 5, Unattached(5, leader_id=2, voted=ME)),
    ],
)
def test_first_role_follows_quorum_state_or_a_newer_log(election: ElectionState | None, last_epoch: int, role: object) -> None:
    found = first_role(ME, election, last_epoch)
    assert (type(found), found) == (type(role), role)


def alone(election: ElectionState | None = None, epochs: tuple[int, ...] = (3,)) -> tuple[Replica, list[fx.Effect]]:
    log = MemoryLog()
    log.entries = [Entry(epoch, 0) for epoch in epochs]
    history = VoterHistory(VoterSet())
    history.note(0, control.kraft_version(1))
    history.note(0, control.kraft_voters(VoterSet([Voter(ME, HERE)])))
    replica = Replica(ME, RaftSettings("c", "C", HERE), history, log, lambda limit: 0, election)
    return replica, replica.start(0)


@pytest.mark.parametrize(
    ("election", "epoch"),
    [(None, 4), (ElectionState(3, 1), 4), (ElectionState(3, -1, OTHER), 4), (ElectionState(5, 2), 6), (ElectionState(5, 1), 6)],
)
def test_the_only_voter_leads_in_its_first_step(election: ElectionState | None, epoch: int) -> None:
    replica, effects = alone(election)
    assert isinstance(replica.role, Leader)
    assert [type(each) for each in effects] == [fx.Persist, fx.AppendControls, fx.LeaderChanged]
    assert effects[0] == fx.Persist(ElectionState(epoch, 1)), "one write, and it names the leader"
    effects = carry_out(replica, effects)
    assert effects[-1] == fx.Sync()
    assert fx.Committed(2) in replica.synced(2, 0)


def test_a_restarted_candidate_wins_in_the_epoch_it_voted_in() -> None:
    replica, _ = alone(ElectionState(7, -1, ME))
    assert replica.epoch == 7


def test_a_single_voter_sets_no_timer() -> None:
    replica, effects = alone()
    carry_out(replica, effects)
    assert replica.deadline_ms > 1 << 60


def test_the_second_voter_has_a_whole_timeout_to_fetch() -> None:
    replica, effects = alone()
    carry_out(replica, effects)
    replica.synced(2, 0)
    hour_ms = 3_600_000
    replica.history.note(2, control.kraft_voters(VoterSet([Voter(ME, HERE), Voter(OTHER, {"C": ("h2", 2)})])))
    replica.log_changed(hour_ms)
    replica.tick(hour_ms + 2999)
    assert isinstance(replica.role, Leader), "check-quorum begins with the second voter"
    replica.tick(hour_ms + 3000)
    assert isinstance(replica.role, Resigned)


def test_leader_resigns_without_a_majority_in_1_5_fetch_timeouts() -> None:
    replica = elected()
    replica.tick(5000 + 2999)
    assert isinstance(replica.role, Leader)
    effects = replica.tick(5000 + 3000)
    assert isinstance(replica.role, Resigned)
    assert fx.LeaderChanged(-1, 1) in effects, "its controller stops at once"
    assert {each.destination.id for each in sent_in(effects)} == {2, 3}, "both are told"


def test_resigned_leader_leaves_its_epoch_after_the_election_timeout() -> None:
    replica = elected()
    replica.tick(8000)
    replica.tick(10_000)
    assert isinstance(replica.role, Unattached)
    assert replica.epoch == 2


def test_follower_stands_when_its_leader_is_silent() -> None:
    replica = replica_of_three(election=ElectionState(2, 3))
    assert isinstance(replica.role, Follower)
    replica.tick(2000)
    assert isinstance(replica.role, Prospective)
    assert replica.epoch == 2


def test_observer_asks_bootstrap_servers_and_never_stands() -> None:
    replica = replica_of_three(7, can_be_voter=False)
    assert list(replica.connections._in_flight) == [-2]
    for now_ms in range(0, 20_000, 100):
        assert all(each.destination.id == -2 for each in sent_in(replica.tick(now_ms)))
    assert isinstance(replica.role, Unattached)


def test_emptied_voter_is_an_observer() -> None:
    voters = VoterSet([Voter(key(node), {"C": (f"h{node}", node)}) for node in (1, 2, 3)])
    replica = replica_of_three(1, voters=voters)
    assert replica.is_voter
    log = MemoryLog()
    wiped = Replica(ReplicaKey(1, key(8).directory_id), replica.settings, VoterHistory(voters), log, lambda limit: 0)
    wiped.start(0)
    wiped.tick(60_000)
    assert not wiped.is_voter
    assert isinstance(wiped.role, Unattached)


def test_stopped_replica_does_nothing_more() -> None:
    replica = replica_of_three()
    assert replica.stop(0) == []
    assert replica.tick(60_000) == []


def test_records_left_by_a_killed_process_are_synced_before_the_first_fetch() -> None:
    log = MemoryLog()
    log.entries = [Entry(1, 1)]
    voters = static_voters([(1, "h1", 1), (2, "h2", 2)], "C")
    replica = Replica(ME, RaftSettings("c", "C", HERE), VoterHistory(voters), log, lambda limit: 0, ElectionState(1, 2))
    effects = replica.start(0)
    assert fx.Sync() in effects
    assert sent_in(effects) == []
    assert [each.destination.id for each in sent_in(replica.synced(1, 5))] == [2]


def test_broken_names_the_problem() -> None:
    with pytest.raises(BrokenInvariant, match="why"):
        replica_of_three().broken("why")
