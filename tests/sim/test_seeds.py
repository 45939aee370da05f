"""The node in the simulator: every invariant holds in every seed's run, with kills, power losses and network faults.

The runs of each scene meet the faults that they should, and give the checkers enough to check.
"""

from collections import Counter
from random import SystemRandom

import pytest

from ottla.sim.plan import SCENES, scene_of
from ottla.sim.run import run_seed

SEEDS = 60
LONG_SEEDS = 2_000
SEEDS_PER_TEST = 20
LEAST = {
    "logs": {
        "lives": 3,
        "power losses": 3,
        "kills": 3,
        "crashes": 3,
        "cuts": 3,
        "partitions": 3,
        "failed": 3,
        "torn": 3,
        "prefix": 3,
        "lost": 3,
        "acknowledged": 2_000,
        "consumed": 2_000,
        "lost to power": 20,  # a power loss that loses nothing proves nothing
        "kept by flush.ms": 20,
    },
    "groups": {"power losses": 10, "offsets": 200, "offsets gone": 5, "generations": 30, "handovers": 10, "committed": 10},
    "transactions": {
        "power losses": 10,
        "transactions": 100,
        "once": 300,
        "unknown endings": 3,
        "producers": 200,
        "other producers": 3,
    },
}
"""What happens at least in the runs of a scene."""
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


@pytest.mark.parametrize("scene", SCENES)
def test_seeds(scene: str) -> None:
    counts: Counter[str] = Counter()
    for seed in [seed for seed in range(SEEDS) if scene_of(seed) == scene]:
        counts.update(run_seed(seed).counts)
    assert {name: counts[name] for name, least in LEAST[scene].items() if counts[name] < least} == {}


@pytest.mark.slow
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
