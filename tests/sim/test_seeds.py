"""The node in the simulator: every invariant holds in every seed's run, with kills, power losses and network faults."""

from random import SystemRandom

import pytest

from ottla.sim.run import run_seed

SEEDS = 80
LONG_SEEDS = 4_000
SEEDS_PER_TEST = 20
FOUND = {
    "a_broker_that_loses_the_epoch_for_which_batches_were_renumbered": 105,
    "a_commit_of_a_consumer_that_has_lost_its_membership": 283,
    "retries_of_batches_that_a_later_one_has_overtaken": 2316,
    "an_upgrade_while_a_cooperative_member_revokes": 3304,
    "a_static_member_that_closes_before_it_has_joined": 2482,
    "an_abort_that_is_repeated_while_it_gets_a_new_epoch": 3587,
}
"""Seeds that have failed, by what they found. A change to the plans gives a seed another run, so each has a unit test, too."""


def run_seeds(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        run_seed(seed)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_seeds(first: int) -> None:
    run_seeds(first)


@pytest.mark.parametrize("seed", FOUND.values(), ids=FOUND.keys())
def test_seeds_that_once_failed(seed: int) -> None:
    run_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, LONG_SEEDS, SEEDS_PER_TEST))
def test_many_more_seeds(first: int) -> None:
    run_seeds(first)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_fresh_seeds(number: int) -> None:
    run_seeds(SystemRandom().randrange(LONG_SEEDS, 1 << 32))
