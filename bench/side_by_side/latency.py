"""The latency rows: one record at a time with acks=all, from before its send until a waiting consumer has it.

The mean is that of Kafka's own EndToEndLatency. Its percentiles are whole milliseconds, longer than most records take:
bench/java/OneAtATime.java does the same, reports microseconds, and leaves out the first records as warm-up.
"""

import json
import re

from bench.side_by_side import produce
from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import Figure, at_most
from bench.side_by_side.sides import Bench, Side

TOOL = "org.apache.kafka.tools.EndToEndLatency"
TOPIC = "latency"
RECORDS, RECORDS_QUICK = 10_000, 1_000
WARM_UP_RECORDS, WARM_UP_RECORDS_QUICK = 2_000, 300
RECORD_BYTES = 100
AVERAGE = re.compile(r"^Avg latency: *([\d.]+) *ms", re.MULTILINE)
GOAL = at_most(1.0)


def rows(bench: Bench) -> list[Figure]:
    produce.warm_up(bench)
    means: tuple[list[float], list[float]] = ([], [])
    p50: tuple[list[float], list[float]] = ([], [])
    p99: tuple[list[float], list[float]] = ([], [])
    for number in range(1, bench.options.rounds + 1):
        for side, averages, middles, tails in zip(bench.pair, means, p50, p99, strict=True):
            averages.append(average(bench, side))
            middle, tail = percentiles(bench, side)
            middles.append(middle)
            tails.append(tail)
            figures = f"{side.label} mean {averages[-1]:.2f} ms, p50 {middle:.2f} ms, p99 {tail:.2f} ms"
            bench.progress.say(f"end-to-end latency, round {number} of {bench.options.rounds}: {figures}")
    return [
        Figure("latency:mean", "end-to-end latency, one record at a time, mean", "ms", *means, goal=GOAL),
        Figure("latency:p50", "end-to-end latency, one record at a time, p50", "ms", *p50, goal=GOAL),
        Figure("latency:p99", "end-to-end latency, one record at a time, p99", "ms", *p99, goal=GOAL),
    ]


def average(bench: Bench, side: Side) -> float:
    """The mean in milliseconds, as Kafka's tool reports it."""
    records = bench.options.scaled(RECORDS, RECORDS_QUICK)
    create_topic(side.server, TOPIC, 1)
    where = ("--bootstrap-server", side.server.bootstrap, "--topic", TOPIC)
    output = bench.run_class(TOOL, *where, "--num-records", records, "--producer-acks", "all", "--record-size", RECORD_BYTES)
    delete_topic(side.server, TOPIC)
    return parse_mean(output)


def parse_mean(output: str) -> float:
    """The mean in milliseconds, from the tool's summary."""
    found = AVERAGE.search(output)
    if found is None:
        raise LoadFailed(f"EndToEndLatency printed no average:\n{output[-2000:]}")
    return float(found[1])


def percentiles(bench: Bench, side: Side) -> tuple[float, float]:
    """The 50th and the 99th percentile, in milliseconds."""
    records = bench.options.scaled(RECORDS, RECORDS_QUICK)
    warm_up = bench.options.scaled(WARM_UP_RECORDS, WARM_UP_RECORDS_QUICK)
    create_topic(side.server, TOPIC, 1)
    told = json.loads(bench.run_class("OneAtATime", side.server.bootstrap, TOPIC, records, warm_up, RECORD_BYTES))
    delete_topic(side.server, TOPIC)
    return told["p50_us"] / 1000, told["p99_us"] / 1000
