"""The rows of 1,000 connections, each writing to its own partition, on one node.

Throughput with a request of 16 KB (a producer's default batch) in flight on every connection; the p99 at a steady rate far
below either server's limit; and the server's peak memory. The load program is the same for both.
"""

import resource
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from bench.side_by_side.admin import create_topic
from bench.side_by_side.figures import Figure
from bench.side_by_side.loads import frames
from bench.side_by_side.loads.probe import Caller, Load, percentile
from bench.side_by_side.processes import MemoryPeak
from bench.side_by_side.sides import Bench, Side

TOPIC = "many"
COUNT = 1000
RECORDS_PER_BATCH, VALUE_BYTES = 16, 1000
WARM_UP_S = 3
SATURATED_S, SATURATED_S_QUICK = 5, 3
STEADY_S, STEADY_S_QUICK = 6, 3
STEADY_PER_S = 500
FILES_NEEDED = 8192
"""Both ends of the connections, and three files per partition."""


@dataclass(frozen=True, slots=True)
class Sample:
    mb_per_s: float
    p99_ms: float
    peak_mb: float


PARTS: tuple[tuple[str, str, str, Callable[[Sample], float]], ...] = (
    ("many:rate", "throughput", "MB/s", lambda sample: sample.mb_per_s),
    ("many:p99", f"p99 of {STEADY_PER_S} requests/s", "ms", lambda sample: sample.p99_ms),
    ("many:memory", "memory, peak", "MB", lambda sample: sample.peak_mb),
)


def rows(bench: Bench) -> list[Figure]:
    allow_open_files(FILES_NEEDED)
    bench.end_pair()  # new servers inherit the new limit, and their memory is that of this load
    with ExitStack() as stack:
        loads = [stack.enter_context(prepared(bench, side)) for side in bench.pair]
        measured: tuple[list[Sample], list[Sample]] = ([], [])
        for number in range(bench.options.rounds + 1):
            for side, load, kept in zip(bench.pair, loads, measured, strict=True):
                if number == 0:
                    load.saturate(WARM_UP_S)
                    continue
                sample = measure(bench, side, load)
                kept.append(sample)
                text = f"{side.label} {sample.mb_per_s:.0f} MB/s, p99 {sample.p99_ms:.2f} ms, {sample.peak_mb:.0f} MB"
                bench.progress.say(f"{COUNT} connections, round {number} of {bench.options.rounds}: {text}")
    bench.end_pair()  # faster than deleting 1,000 partitions
    apache, ottla = measured
    what = "1,000 connections × 1,000 partitions"
    return [
        Figure(key, f"{what}: {part}", unit, [pick(each) for each in apache], [pick(each) for each in ottla])
        for key, part, unit, pick in PARTS
    ]


def allow_open_files(needed: int) -> None:
    """Raise the soft limit of this process, which servers inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard))


def prepared(bench: Bench, side: Side) -> Load:
    """Create the topic, and open a connection for each of its partitions."""
    bench.progress.say(f"{COUNT} connections: creating {COUNT} partitions on {side.label}")
    create_topic(side.server, TOPIC, COUNT)
    records = frames.batch(RECORDS_PER_BATCH, VALUE_BYTES)
    callers = []
    for partition in range(COUNT):
        frame = frames.produce_frame(TOPIC, partition, records)
        connection = frames.connect(side.server.bootstrap)
        frames.write_first(connection, frame, TOPIC)
        callers.append(Caller(connection, frame))
    return Load(callers, frames.produce_check(side.label, TOPIC))


def measure(bench: Bench, side: Side, load: Load) -> Sample:
    with MemoryPeak(side.pid) as memory:
        answers_per_s = load.saturate(bench.options.scaled(SATURATED_S, SATURATED_S_QUICK))
        end = time.perf_counter() + bench.options.scaled(STEADY_S, STEADY_S_QUICK)
        samples = load.paced(STEADY_PER_S, lambda: time.perf_counter() > end)
    p99_ms = percentile([took_s for _, took_s in samples], 0.99) * 1000
    return Sample(answers_per_s * RECORDS_PER_BATCH * VALUE_BYTES / 1e6, p99_ms, memory.peak_mb)
