"""The rows of many: 1,000 connections, each writing to a partition of its own, on one node.

Throughput with a request of 16 KB (a producer's default batch) under way on every connection; then the p99 of a steady rate
that is far from either server's limit; and the server's memory at its peak. The load program is the same for both.
"""

import resource
import time

from bench.side_by_side import frames
from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.errors import BadReply
from bench.side_by_side.figures import Figure
from bench.side_by_side.probe import Caller, Load, percentile
from bench.side_by_side.processes import MemoryPeak
from bench.side_by_side.sides import Bench, Side

TOPIC = "many"
COUNT = 1000
RECORDS_PER_BATCH, VALUE_BYTES = 16, 1000
SATURATED_S, SATURATED_S_QUICK = 8, 3
STEADY_S, STEADY_S_QUICK = 8, 3
STEADY_PER_S = 500
FILES_NEEDED = 8192
"""Connections on both ends, and three files per partition."""


def rows(bench: Bench) -> list[Figure]:
    allow_open_files(FILES_NEEDED)
    bench.end_pair()  # servers that start anew inherit the new limit, and their memory is that of this load
    for side in bench.pair:
        bench.progress.say(f"many: making {COUNT} partitions on {side.label}")
        create_topic(side.server, TOPIC, COUNT)
    rates: tuple[list[float], list[float]] = ([], [])
    tails: tuple[list[float], list[float]] = ([], [])
    peaks: tuple[list[float], list[float]] = ([], [])
    for number in range(bench.options.rounds + 1):
        for index, side in enumerate(bench.pair):
            rate, p99_ms, peak_mb = measure(bench, side)
            if number == 0:  # the first warms the servers up
                continue
            rates[index].append(rate)
            tails[index].append(p99_ms)
            peaks[index].append(peak_mb)
            told = f"{side.label} {rate:.0f} MB/s, p99 {p99_ms:.2f} ms at {STEADY_PER_S}/s, {peak_mb:.0f} MB"
            bench.progress.say(f"{COUNT} connections, round {number} of {bench.options.rounds}: {told}")
    for side in bench.pair:
        delete_topic(side.server, TOPIC)
    what = "1,000 connections × 1,000 partitions"
    return [
        Figure("many:rate", f"{what}: throughput", "MB/s", *rates),
        Figure("many:p99", f"{what}: p99 of {STEADY_PER_S} requests/s", "ms", *tails),
        Figure("many:memory", f"{what}: memory, peak", "MB", *peaks),
    ]


def allow_open_files(needed: int) -> None:
    """Raise the soft limit of this process, which servers inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else min(needed, hard), hard))


def measure(bench: Bench, side: Side) -> tuple[float, float, float]:
    """MB/s under way everywhere, p99 in ms of the steady rate, peak MB of memory."""
    saturated_s = bench.options.scaled(SATURATED_S, SATURATED_S_QUICK)
    steady_s = bench.options.scaled(STEADY_S, STEADY_S_QUICK)
    records = frames.batch(RECORDS_PER_BATCH, VALUE_BYTES)

    def check(reply: bytes) -> None:
        if code := frames.produce_error(reply, TOPIC):
            raise BadReply(f"{side.label} answers the load of {COUNT} connections with error {code}")

    callers = [
        Caller(frames.connect(side.server.bootstrap), frames.produce_frame(TOPIC, partition, records))
        for partition in range(COUNT)
    ]
    with MemoryPeak(side.pid) as memory, Load(callers, check) as load:
        answers_per_s = load.saturate(saturated_s)
        end = time.perf_counter() + steady_s
        samples = load.paced(STEADY_PER_S, lambda: time.perf_counter() > end)
    p99_ms = percentile([took_s for _, took_s in samples], 0.99) * 1000
    return answers_per_s * len(records) / 1e6, p99_ms, memory.peak_mb
