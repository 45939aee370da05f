"""Timing of the micro-benchmarks: contenders take turns in short rounds, and the median of their rounds counts.

On a noisy machine absolute numbers mean little. Contenders run interleaved in one process; quote only ratios of the same run.
"""

import statistics
import time
from collections.abc import Callable, Mapping


def per_call_seconds(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 9, round_s: float = 0.05
) -> dict[str, float]:
    """Median seconds per call of each contender, in the order given."""
    calls = {name: _calls_per_round(call, round_s) for name, call in contenders.items()}
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, call in contenders.items():
            count = calls[name]
            start = time.perf_counter()
            for _ in range(count):
                call()
            taken[name].append((time.perf_counter() - start) / count)
    return {name: statistics.median(times) for name, times in taken.items()}


def _calls_per_round(call: Callable[[], object], round_s: float) -> int:
    call()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        took = time.perf_counter() - start
        if took >= round_s / 4:
            return max(1, int(count * round_s / took))
        count *= 4
