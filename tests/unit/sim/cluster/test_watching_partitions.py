"""Checkers hear of partitions, and of what leaders propose."""

import pytest

from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import HeldPartition
from ottla.sim.cluster.checkers.partitions import PartitionStates, SteadyIsr
from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.run import RunFailed

SEED = 3
"""A run in which replicas join ISRs."""


@pytest.mark.slow
def test_states_moves_and_proposals_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    proposals: list[tuple[str, HeldPartition, tuple[int, ...]]] = []
    monkeypatch.setattr(SteadyIsr, "isr_proposed", lambda checker, *what: proposals.append(what))
    moves: dict[tuple[str, str], list[int]] = {}

    def note(checker: PartitionStates, node: str, held: HeldPartition) -> None:
        if held.is_leading:
            moves.setdefault((node, f"{held.name}/{held.leader_epoch}"), []).append(held.high_watermark)

    monkeypatch.setattr(PartitionStates, "partition_held", note)
    run_cluster_seed(SEED, replicas=3)
    assert max(len(set(marks)) for marks in moves.values()) > 10
    assert any(set(isr) > set(held.isr) for _, held, isr in proposals), "a replica joins"
    for _, held, isr in proposals:
        assert held.leader in isr


def test_a_violation_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def object_to(checker: PartitionStates, node: str, held: HeldPartition) -> None:
        raise Violation("found out")

    monkeypatch.setattr(PartitionStates, "partition_held", object_to)
    with pytest.raises(RunFailed, match="found out"):
        run_cluster_seed(SEED, replicas=3)


def test_a_leader_tells_of_its_high_watermark_before_it_is_killed() -> None:
    # A leader without followers answers, and is killed before its next turn, in which it would have told.
    run_cluster_seed(4164, replicas=1)
