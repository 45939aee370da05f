"""The node in the simulator: every invariant holds in every seed's run, with kills, power losses and network faults."""

from random import SystemRandom

import pytest

from ottla.sim.run import run_seed

SEEDS = 200
LONG_SEEDS = 4_000
SEEDS_PER_TEST = 20


def run_seeds(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        run_seed(seed)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_seeds(first: int) -> None:
    run_seeds(first)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, LONG_SEEDS, SEEDS_PER_TEST))
def test_many_more_seeds(first: int) -> None:
    run_seeds(first)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10))
def test_fresh_seeds(number: int) -> None:
    run_seeds(SystemRandom().randrange(LONG_SEEDS, 1 << 32))
