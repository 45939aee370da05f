"""Simulated quorums: what Raft promises holds under crashes, power losses, cuts and pauses, and each deliberate break is seen.

One seed is one run. `run_seed(N)` of a failing seed repeats it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.raft.checkers import Violation
from tests.support.raft.quorum import Faults, SimQuorum, run_seed

from ottla.raft import replica as replica_module
from ottla.raft.requests import between_voters, fetch, vote
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.resigned import Resigned

SEEDS = 100
BREAK_SEEDS = 100
WILD = Faults(drop=0.2, slow=0.3, crash_every_ms=150, cut_every_ms=200, pause_every_ms=400, snapshots=False)


def run_seeds(count: int, faults: Faults | None = None) -> None:
    for seed in range(count):
        run_seed(seed, faults)


def test_three_voters_keep_every_promise() -> None:
    for seed in range(SEEDS):
        run_seed(seed)


def test_five_voters_and_an_observer_keep_every_promise() -> None:
    for seed in range(SEEDS // 4):
        run_seed(seed, Faults(nodes=5, observers=1))


def test_a_quorum_without_faults_elects_one_leader_and_keeps_it() -> None:
    for seed in range(20):
        quorum = run_seed(seed, Faults(drop=0, slow=0, crash_every_ms=0, cut_every_ms=0, pause_every_ms=0))
        assert len(quorum.checkers.leaders) == 1
        assert len(quorum.checkers.committed) > 50


def test_restarted_node_has_timers_of_its_own() -> None:
    quorum = SimQuorum(1, Faults(drop=0, slow=0, crash_every_ms=0, cut_every_ms=0, pause_every_ms=0))
    quorum.run(500)
    (leader,) = [node for node in quorum.nodes.values() if node.replica and isinstance(node.replica.role, Leader)]
    assert quorum.run(500, lambda: leader.timer > quorum.now + 50)
    quorum.cuts = {(a, b) for a in quorum.nodes for b in quorum.nodes}
    quorum.crash(leader)
    quorum.start(leader)  # it sends nothing and hears nothing
    quorum.run(300)
    assert leader.replica is not None
    assert not isinstance(leader.replica.role, Resigned)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 1000))
def test_many_more_seeds(first: int) -> None:
    for seed in range(first, first + 1000):
        assert not run_seed(seed).is_stalled


def forgets_votes(patch: pytest.MonkeyPatch) -> Faults:
    patch.setattr(replica_module.Replica, "vote_for", lambda self, candidate, now_ms: None)
    return Faults()


def fetches_before_the_sync(patch: pytest.MonkeyPatch) -> Faults:
    return Faults(lies_about_sync=True)


def ignores_epochs(patch: pytest.MonkeyPatch) -> Faults:
    patch.setattr(vote, "refuse_voter_request", lambda replica, sender_id, epoch: None)
    patch.setattr(fetch, "refuse_leader_request", lambda replica, epoch: None if isinstance(replica.role, Leader) else 6)
    for module in (between_voters, fetch):
        patch.setattr(module, "learn_from_answer", lambda replica, error, *leader: None if error == 0 else True)
    return WILD


def commits_records_of_old_epochs(patch: pytest.MonkeyPatch) -> Faults:
    honest = Leader.recounted

    def recounted(self: Leader, voters: Any) -> Leader:
        found = honest(self._replace(epoch_start_offset=-1), voters)
        return found._replace(epoch_start_offset=self.epoch_start_offset)

    patch.setattr(Leader, "recounted", recounted)
    return Faults()


def grants_votes_to_shorter_logs(patch: pytest.MonkeyPatch) -> Faults:
    honest = replica_module.Unattached.grants
    patch.setattr(replica_module.Unattached, "grants", lambda self, key, is_up_to_date, pre: honest(self, key, True, pre))
    return Faults()


def answers_before_persisting(patch: pytest.MonkeyPatch) -> Faults:
    from tests.support.raft.quorum import SimQuorum

    honest = SimQuorum._carry_out

    def hasty(self: SimQuorum, node: Any, replica: Any, effects: list[Any]) -> None:
        if effects and isinstance(effects[0], replica_module.Persist):
            effects = [*effects[1:], effects[0]]
        honest(self, node, replica, effects)

    patch.setattr(SimQuorum, "_carry_out", hasty)
    return Faults(crash_every_ms=300)


def ignores_diverging_logs(patch: pytest.MonkeyPatch) -> Faults:
    patch.setattr(fetch, "check_position", lambda log, offset, epoch: None)
    return Faults(snapshots=False)


@pytest.mark.parametrize(
    "make_mistake",
    [
        forgets_votes,
        fetches_before_the_sync,
        ignores_epochs,
        commits_records_of_old_epochs,
        grants_votes_to_shorter_logs,
        answers_before_persisting,
        ignores_diverging_logs,
    ],
)
def test_a_deliberate_break_is_found(
    make_mistake: Callable[[pytest.MonkeyPatch], Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = make_mistake(monkeypatch)
    with pytest.raises(Violation):
        run_seeds(BREAK_SEEDS, faults)
