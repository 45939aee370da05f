"""Ten thousand random steps on partition logs beside their model, without a difference.

The steps come from fixed seeds, so that a failure is repeatable: its note names the seed, and
`run_steps(seed, steps)` takes the same steps again. Only `test_steps_of_fresh_seeds` draws its seeds. Each seed is another log
with other settings. Events are counted, and each kind must occur often enough: rolls, compactions
that removed records, truncations, kills, power losses that lost or tore something, duplicates recognised, and the rest.
"""

from collections import Counter
from random import SystemRandom

import pytest
from tests.model.partition_log.machine import run_steps

STEPS_PER_LOG = 500
LOGS = 30

MINIMA = {
    "appends": 3000,
    "follower appends": 300,
    "rolls": 300,
    "reads": 500,
    "interleaved": 300,
    "time lookups": 150,
    "flushes": 500,
    "commits": 100,
    "aborts": 100,
    "duplicates recognised": 150,
    "refused: OUT_OF_ORDER_SEQUENCE_NUMBER": 40,
    "refused: INVALID_PRODUCER_EPOCH": 40,
    "refused: TRANSACTION_COORDINATOR_FENCED": 2,
    "truncations": 80,
    "delete_records": 40,
    "segments deleted by retention": 40,
    "compactions": 20,
    "compactions that removed records": 20,
    "kills": 100,
    "power losses": 80,
    "power losses with damage": 60,
    "torn tails cut": 20,
    "loads that lost records": 40,
    "loads cut short": 30,
    "cut short: truncate": 10,
    "cut short: compact": 4,
    "cut short: retain": 2,
    "cut short: flush": 2,
    "cut short: restart": 5,
    "disk failures": 5,
    "power losses that left holes": 3,
    "clean restarts": 80,
    "full comparisons": 300,
}


def check_minima(counts: Counter[str]) -> None:
    missing = {what: (counts[what], least) for what, least in MINIMA.items() if counts[what] < least}
    assert not missing, f"some events were too rare; (counted, required): {missing}"


def test_ten_thousand_steps_without_a_difference() -> None:
    assert LOGS * STEPS_PER_LOG >= 10_000
    counts: Counter[str] = Counter()
    for seed in range(LOGS):
        counts += run_steps(seed, STEPS_PER_LOG)
    print(dict(sorted(counts.items())))
    check_minima(counts)


def test_transaction_that_began_before_a_log_start_lost_in_a_crash() -> None:
    run_steps(100278, 300)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first_seed", range(1000, 2000, 250))
def test_three_hundred_thousand_steps_without_a_difference(first_seed: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first_seed, first_seed + 250):
        counts += run_steps(seed, 300)
    check_minima(counts)


@pytest.mark.slow
def test_steps_of_fresh_seeds() -> None:
    first_seed = SystemRandom().randrange(10_000, 1 << 32)
    for seed in range(first_seed, first_seed + 50):
        run_steps(seed, 300)
