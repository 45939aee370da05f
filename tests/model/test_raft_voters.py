"""Simulated quorums whose voters change: added, removed, emptied, joining by themselves, upgraded to kraft.version 1.

What Raft promises holds all the while, the quorum is live afterwards, and each deliberate break is found.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.raft.changes import ChangingQuorum
from tests.support.raft.checkers import Violation
from tests.support.raft.memory_log import Entry
from tests.support.raft.quorum import Faults, SimNode, run_seed

from ottla.ids import Uuid
from ottla.raft import actions, control
from ottla.raft.election import ElectionState
from ottla.raft.replica import Replica
from ottla.raft.requests import add_raft_voter, remove_raft_voter, voter_changes
from ottla.raft.roles.follower import Follower
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import ReplicaKey, Voter, VoterSet

SEEDS = 20
BREAK_SEEDS = 100
OPERATED = Faults(observers=2, changes_every_ms=80)
EMPTIED = Faults(observers=1, changes_every_ms=100, wipes_every_ms=400)
JOINING = Faults(nodes=1, observers=3, auto_join=True, wipes_every_ms=500)
UPGRADED = Faults(observers=1, upgrades=True, changes_every_ms=150)


def run_seeds(seeds: range, faults: Faults) -> list[ChangingQuorum]:
    return [run_seed(seed, faults, kind=ChangingQuorum) for seed in seeds]


def test_operators_add_and_remove_voters() -> None:
    quorums = run_seeds(range(SEEDS), OPERATED)
    assert sum(quorum.changes for quorum in quorums) > SEEDS


def test_emptied_controllers_are_replaced() -> None:
    quorums = run_seeds(range(SEEDS), EMPTIED)
    assert sum(node.is_empty for quorum in quorums for node in quorum.nodes.values()) > SEEDS // 10


def test_controllers_join_by_themselves() -> None:
    run_seeds(range(SEEDS), JOINING)


def test_static_quorums_are_upgraded() -> None:
    quorums = run_seeds(range(SEEDS), UPGRADED)
    assert sum(quorum.changes for quorum in quorums) > SEEDS // 10


def stalled_quorum() -> ChangingQuorum:
    """Voters 1, 2 and 3. Leader 3 of epoch 2 has lost its disk; its last record has reached observer 4 alone.

    Voter 2 led epoch 1 and was cut off while it added 4 as a voter. So 1 has a shorter log than 2, and 2 needs the vote of 4,
    whose log is longer.
    """
    calm = Faults(drop=0, slow=0, crash_every_ms=0, cut_every_ms=0, pause_every_ms=0, snapshots=False, observers=1)
    quorum = ChangingQuorum(1, calm)
    for node in quorum.nodes.values():
        quorum.crash(node)
    voters = VoterSet(Voter(node.key, {"C": (f"h{each}", each)}) for each, node in quorum.nodes.items())
    first = VoterSet(voter for voter in voters if voter.key.id != 4)
    common = [Entry(1, control.kraft_version(1)), Entry(1, control.kraft_voters(first))]
    for each, own in ((1, []), (2, [Entry(1, control.kraft_voters(voters))]), (4, [Entry(2, 1000)])):
        node = quorum.nodes[each]
        node.log.entries, node.election = [*common, *own], ElectionState(2, 3)
        node.log.sync_done(node.log.end_offset)
    quorum.wipe(quorum.nodes[3])
    return quorum


def test_no_voter_can_win_if_a_lost_leader_was_about_to_add_the_longest_log() -> None:
    """Kafka has no leader in this state, either."""
    quorum = stalled_quorum()
    quorum.heal()
    quorum.check_live()
    assert quorum.is_stalled


@pytest.mark.slow
@pytest.mark.parametrize("faults", [OPERATED, EMPTIED, JOINING, UPGRADED])
@pytest.mark.parametrize("first", range(10_000, 12_000, 500))
def test_many_more_seeds(faults: Faults, first: int) -> None:
    quorums = run_seeds(range(first, first + 500), faults)
    assert sum(quorum.is_stalled for quorum in quorums) <= 2


def several_changes_at_once(patch: pytest.MonkeyPatch) -> Faults:
    for module in (add_raft_voter, remove_raft_voter):
        patch.setattr(module, "refuse_change", lambda replica: None)
    return Faults(observers=2, changes_every_ms=20, cut_every_ms=300)


def truncation_keeps_voters(patch: pytest.MonkeyPatch) -> Faults:
    honest = VoterHistory.truncate_to
    patch.setattr(VoterHistory, "truncate_to", lambda self, offset: honest(self, offset) if offset < 0 else None)
    return Faults(observers=2, changes_every_ms=20, cut_every_ms=300)


def emptied_voters_keep_their_key(patch: pytest.MonkeyPatch) -> Faults:
    honest = ChangingQuorum.start

    def start(self: ChangingQuorum, node: SimNode) -> None:
        if node.is_empty:
            node.key, node.is_empty = ReplicaKey(node.key.id, Uuid(bytes([node.key.id]) * 16)), False
        honest(self, node)

    patch.setattr(ChangingQuorum, "start", start)
    return Faults(wipes_every_ms=100)


def joining_voters_do_not_remove_their_old_key(patch: pytest.MonkeyPatch) -> Faults:
    honest = actions._update_of_voter

    def update(replica: Any, role: Any) -> Any:
        found = honest(replica, role)
        return None if found is not None and found.KEY == remove_raft_voter.RemoveRaftVoterRequest.KEY else found

    patch.setattr(actions, "_update_of_voter", update)
    return JOINING


def changes_count_before_the_epoch_is_committed(patch: pytest.MonkeyPatch) -> Faults:
    def refuse(replica: Any) -> voter_changes.Refusal | None:
        return None if replica.voter_change is None else (7, None)

    for module in (add_raft_voter, remove_raft_voter):
        patch.setattr(module, "refuse_change", refuse)
    return Faults(observers=2, changes_every_ms=10, cut_every_ms=150, crash_every_ms=400)


def removed_voters_never_stand(patch: pytest.MonkeyPatch) -> Faults:
    patch.setattr(Replica, "may_stand", Replica.is_voter)
    return OPERATED


def observers_stay_with_a_silent_leader(patch: pytest.MonkeyPatch) -> Faults:
    patch.setattr(Follower, "grants", lambda self, key, is_up_to_date, is_pre_vote: False)
    return JOINING


@pytest.mark.parametrize(
    "make_mistake",
    [
        several_changes_at_once,
        truncation_keeps_voters,
        emptied_voters_keep_their_key,
        joining_voters_do_not_remove_their_old_key,
        changes_count_before_the_epoch_is_committed,
        removed_voters_never_stand,
        observers_stay_with_a_silent_leader,
    ],
)
def test_a_deliberate_break_is_found(
    make_mistake: Callable[[pytest.MonkeyPatch], Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = make_mistake(monkeypatch)
    with pytest.raises(Violation):
        run_seeds(range(BREAK_SEEDS), faults)
