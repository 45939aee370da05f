"""Three nodes in the simulator: every invariant holds in every seed's run, and every run serves again after its troubles."""

from random import SystemRandom

import pytest

from ottla.sim.cluster.run import run_cluster_seed

SEEDS = 8
REPLICATED_SEEDS = 4
LONG_SEEDS = 400
LONG_REPLICATED_SEEDS = 200
SEEDS_PER_TEST = 4
SEEDS_PER_LONG_TEST = 20
FOUND = {
    "an_internal_topic_that_another_node_has_just_created": 1,
    "a_start_while_the_controller_loses_its_power": 58,
    "a_slow_disk_during_an_election": 68,
    "the_metadata_of_a_node_that_is_behind": 105,
    "a_deletion_at_a_coordinator_that_is_behind": 190,
}
"""Seeds that have failed, by what they found."""


def run_seeds(first: int, count: int, replicas: int = 1) -> None:
    for seed in range(first, first + count):
        run_cluster_seed(seed, replicas=replicas)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_seeds(first: int) -> None:
    run_seeds(first, SEEDS_PER_TEST)


def test_seeds_with_three_replicas() -> None:
    run_seeds(0, REPLICATED_SEEDS, replicas=3)


def test_three_replicas_that_overtake_a_lost_first_batch() -> None:
    run_cluster_seed(23, replicas=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", FOUND.values(), ids=FOUND.keys())
def test_seeds_that_once_failed(seed: int) -> None:
    run_cluster_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, LONG_SEEDS, SEEDS_PER_LONG_TEST))
def test_many_more_seeds(first: int) -> None:
    run_seeds(first, SEEDS_PER_LONG_TEST)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(REPLICATED_SEEDS, LONG_REPLICATED_SEEDS, SEEDS_PER_LONG_TEST))
def test_many_more_seeds_with_three_replicas(first: int) -> None:
    run_seeds(first, SEEDS_PER_LONG_TEST, replicas=3)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_fresh_seeds(number: int) -> None:
    run_seeds(SystemRandom().randrange(LONG_SEEDS, 1 << 32), SEEDS_PER_LONG_TEST)
