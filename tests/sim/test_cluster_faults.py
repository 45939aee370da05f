"""Runs with lost, full and rotten disks, changed voters, replaced nodes, and five nodes.

The fault has happened, and every invariant holds.
"""

import pytest

from ottla.sim.cluster.plan import make_cluster_plan
from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.run import Outcome

WIPED = {"static_voters": 16, "voters_in_the_log": 4}
FULL = 40
CHANGED_VOTERS = 8
REPLACED = {"voter_is_added": (3, 3), "voter_joins_by_itself": (39, 3), "broker_beside_static_voters": (22, 5)}
"""Seed and number of nodes."""
ROTTEN = 105
"""A run in which the rotten node leads, and its disk is replaced."""
FIVE_NODES = {"three_controllers": 4, "five_controllers": 1}
LONG_SEEDS = 60
SEEDS_PER_LONG_TEST = 10


def run(seed: int, nodes: int = 3) -> Outcome:
    return run_cluster_seed(seed, nodes, replicas=3)


def events(outcome: Outcome, name: str) -> list[str]:
    """The events of this name of all nodes."""
    return [line for line in outcome.trace if line[14:15] == "n" and line[23:].startswith(name)]


@pytest.mark.parametrize("seed", WIPED.values(), ids=WIPED.keys())
def test_a_wiped_node_gets_a_snapshot_and_its_replicas_from_the_others(seed: int) -> None:
    outcome = run(seed)
    assert outcome.counts["wipes"] == 1
    assert events(outcome, "loads")


def test_a_node_stops_when_its_disk_is_full_and_comes_back() -> None:
    outcome = run(FULL)
    assert events(outcome, "full disk")
    assert events(outcome, "gives up")


def test_consumers_read_on_when_a_rotten_disk_was_replaced() -> None:
    outcome = run(ROTTEN)
    assert events(outcome, "rot")
    assert any(" damaged " in line for line in outcome.trace), "a consumer has met it"
    assert not events(outcome, "repaired")
    assert outcome.counts["wipes"] == 1


def test_a_voter_is_removed_and_added() -> None:
    assert [line.split()[-1] for line in events(run(CHANGED_VOTERS), "voters")] == ["removed", "added"]


@pytest.mark.parametrize("kind", ["voter_is_added", *(pytest.param(each, marks=pytest.mark.slow) for each in [*REPLACED][1:])])
def test_a_lost_node_is_replaced_by_one_with_another_id(kind: str) -> None:
    seed, nodes = REPLACED[kind]
    outcome = run(seed, nodes)
    assert outcome.counts["replaced"] == 1
    (replaces,) = events(outcome, "replaces")
    new, lost = replaces.split()[1], replaces.split()[-1]
    assert new == f"n{nodes + 1}"
    assert [line.split()[1] for line in events(outcome, "unregistered")] == [lost]
    voters = {"voter_is_added": [(lost, "removed"), (new, "added")], "voter_joins_by_itself": [(lost, "removed")]}
    assert [(line.split()[1], line.split()[-1]) for line in events(outcome, "voters")] == voters.get(kind, [])


@pytest.mark.parametrize("kind", [pytest.param("three_controllers", marks=pytest.mark.slow), "five_controllers"])
def test_five_nodes(kind: str) -> None:
    seed = FIVE_NODES[kind]
    assert make_cluster_plan(seed, 5, 3).controllers == (3 if kind == "three_controllers" else None)
    assert run(seed, nodes=5).counts["committed records"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, LONG_SEEDS, SEEDS_PER_LONG_TEST))
def test_many_seeds_of_five_nodes(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_LONG_TEST):
        run(seed, nodes=5)
