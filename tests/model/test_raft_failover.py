"""How a simulated quorum starts, and replaces a leader whose process was killed: soon, and with one election."""

from dataclasses import replace

import pytest
from tests.support.raft.quorum import Faults, SimNode, SimQuorum

from ottla.raft.roles.leader import Leader
from ottla.raft.roles.prospective import Prospective

SEEDS = 40
ELECTION_TIMEOUT_MS, FETCH_TIMEOUT_MS = 100, 200
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
    taken = [fail_over(seed, refuses=1) for seed in range(25)]
    assert sum(epochs > 1 for _, epochs in taken) >= 5, "without it, votes are often split"


# -- starts


def first_commit(quorum: SimQuorum) -> tuple[int, int]:
    """Milliseconds until a record of a new epoch is committed, and that epoch."""
    began_ms, known = quorum.now, len(quorum.checkers.committed_in)
    epochs = {node.replica.epoch for node in quorum.nodes.values() if node.replica is not None}

    def has_leader() -> bool:
        return len(quorum.checkers.committed_in) > known and quorum.checkers.committed_in[-1] > max(epochs)

    assert quorum.run(5000, has_leader), "no leader"
    return quorum.now - began_ms, quorum.checkers.committed_in[-1]


@pytest.mark.parametrize("nodes", [3, 5])
def test_a_new_quorum_elects_its_first_leader_before_the_election_timeout(nodes: int) -> None:
    taken = [first_commit(SimQuorum(seed, replace(CALM, nodes=nodes))) for seed in range(SEEDS)]
    times_ms = sorted(each for each, _ in taken)
    assert times_ms[SEEDS * 90 // 100] < ELECTION_TIMEOUT_MS, times_ms
    assert sum(epoch == 1 for _, epoch in taken) >= SEEDS * 0.9, "votes are rarely split"


def started_again(seed: int, apart_ms: int) -> int:
    """Kill all nodes of a quorum, and start them one after another; milliseconds from the last start until it commits."""
    quorum = SimQuorum(seed, replace(CALM, refuses=1))
    assert quorum.run(3000, lambda: len(quorum.checkers.committed) > 3)
    quorum.run(quorum.random.randint(500, 700))
    epoch = quorum.checkers.committed_in[-1]
    nodes = list(quorum.nodes.values())
    for node in nodes:
        quorum.crash(node)
    quorum.run(500)
    for node in quorum.random.sample(nodes, len(nodes)):
        quorum.start(node)
        quorum.run(apart_ms)
    began_ms = quorum.now

    def has_leader() -> bool:
        return quorum.checkers.committed_in[-1] > epoch

    assert has_leader() or quorum.run(5000, has_leader), f"seed {seed}: no leader"
    return quorum.now - began_ms


@pytest.mark.parametrize("apart_ms", [0, 15])
def test_a_quorum_whose_nodes_were_all_killed_elects_a_leader_before_the_fetch_timeout(apart_ms: int) -> None:
    times_ms = sorted(started_again(seed, apart_ms) for seed in range(SEEDS // 2))
    assert times_ms[len(times_ms) * 90 // 100] < FETCH_TIMEOUT_MS // 2, times_ms


def test_a_voter_that_starts_again_disturbs_no_leader() -> None:
    for seed in range(SEEDS // 2):
        quorum = SimQuorum(seed, CALM)
        assert quorum.run(3000, lambda quorum=quorum: len(quorum.checkers.committed) > 3)
        quorum.run(quorum.random.randint(500, 700))
        leader = leader_of(quorum)
        assert leader is not None
        for node in quorum.nodes.values():
            if node is leader:
                continue
            quorum.crash(node)
            quorum.run(quorum.random.randint(0, 40))
            if seed % 2:
                node.election = None  # it knows its log alone, and no leader
            quorum.start(node)
            quorum.run(400)
        assert len(quorum.checkers.leaders) == 1, f"seed {seed}: {quorum.checkers.leaders}"
