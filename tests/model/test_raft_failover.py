"""How a simulated quorum replaces a leader whose process was killed: soon, and with one election."""

from dataclasses import replace

import pytest
from tests.support.raft.quorum import Faults, SimNode, SimQuorum

from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective

SEEDS = 200
FETCH_TIMEOUT_MS = 200
CALM = Faults(drop=0, slow=0, crash_every_ms=0, cut_every_ms=0, pause_every_ms=0, snapshots=False)


def leader_of(quorum: SimQuorum) -> SimNode | None:
    leaders = [node for node in quorum.nodes.values() if node.replica is not None and isinstance(node.replica.role, Leader)]
    return max(leaders, key=lambda node: node.replica.epoch if node.replica else -1, default=None)


def fail_over(seed: int, refuses: float, nodes: int = 3) -> tuple[int, int]:
    """Kill the leader; returns the milliseconds until another one has committed a record, and the epochs that it took."""
    quorum = SimQuorum(seed, replace(CALM, refuses=refuses, nodes=nodes))
    assert quorum.run(3000, lambda: len(quorum.checkers.committed) > 3)
    quorum.run(quorum.random.randint(500, 700))
    old = leader_of(quorum)
    assert old is not None
    assert old.replica is not None
    epoch, began_ms = old.replica.epoch, quorum.now
    quorum.crash(old)

    def is_replaced() -> bool:
        return bool(quorum.checkers.committed_in) and quorum.checkers.committed_in[-1] > epoch

    assert quorum.run(5000, is_replaced), f"seed {seed}: no new leader"
    return quorum.now - began_ms, quorum.checkers.committed_in[-1] - epoch


ONCE = {3: 0.99, 5: 0.9}
"""The least share of failovers with one election. Of five voters three may ask together, and each has a majority to ask."""


@pytest.mark.parametrize("nodes", [3, 5])
def test_a_leader_whose_port_refuses_is_replaced_before_the_fetch_timeout(nodes: int) -> None:
    taken = [fail_over(seed, refuses=1, nodes=nodes) for seed in range(SEEDS)]
    times_ms = sorted(each for each, _ in taken)
    assert times_ms[SEEDS * 95 // 100] < FETCH_TIMEOUT_MS, times_ms
    assert sum(epochs == 1 for _, epochs in taken) >= SEEDS * ONCE[nodes], "votes are rarely split"


@pytest.mark.parametrize("nodes", [3, 5])
def test_a_silent_leader_is_replaced_with_one_election(nodes: int) -> None:
    taken = [fail_over(seed, refuses=0, nodes=nodes) for seed in range(SEEDS)]
    times_ms = sorted(each for each, _ in taken)
    assert times_ms[SEEDS // 2] < 1.5 * FETCH_TIMEOUT_MS, times_ms
    assert sum(epochs == 1 for _, epochs in taken) >= SEEDS * ONCE[nodes], "votes are rarely split"


def test_one_election_needs_that_one_of_two_yields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prospective, "yields_to", lambda self, *_: self)
    taken = [fail_over(seed, refuses=1) for seed in range(SEEDS // 4)]
    assert sum(epochs > 1 for _, epochs in taken) >= 5, "without it, votes are often split"
