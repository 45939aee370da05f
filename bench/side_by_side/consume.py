"""The consume rows: a Java consumer that assigns itself all partitions drains a topic that lies in the page cache.

bench/java/AssignPerf.java drains the topic twice: the first pass warms it up, the second gives MB/s. The broker's
CPU is that of both.
"""

import json
import os
from typing import Any

from bench.side_by_side import produce
from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.figures import Figure, at_least, at_most
from bench.side_by_side.processes import cpu_seconds
from bench.side_by_side.sides import Bench, Side

TOPIC, PARTITIONS, RECORD_BYTES = "consume", 6, 1000
RECORDS, RECORDS_QUICK = 1_000_000, 200_000
PASSES = 2
RATE_GOAL, CPU_GOAL = at_least(1.0), at_most(0.5)


def rows(bench: Bench) -> list[Figure]:
    produce.warm_up(bench)
    records = bench.options.scaled(RECORDS, RECORDS_QUICK)
    for side in bench.pair:
        create_topic(side.server, TOPIC, PARTITIONS)
        bench.progress.say(f"consume: filling a topic of {side.label}")
        produce.run_tool(bench, side, TOPIC, records, RECORD_BYTES)
    os.sync()  # or the system writes to the disk while the first rounds are measured
    rates: tuple[list[float], list[float]] = ([], [])
    costs: tuple[list[float], list[float]] = ([], [])
    for number in range(1, bench.options.rounds + 1):
        for side, kept_rates, kept_costs in zip(bench.pair, rates, costs, strict=True):
            rate, cost = drain(bench, side, records)
            kept_rates.append(rate)
            kept_costs.append(cost)
            told = f"{side.label} {rate:.0f} MB/s, {cost:.2f} CPU s/GB"
            bench.progress.say(f"consume, round {number} of {bench.options.rounds}: {told}")
    for side in bench.pair:
        delete_topic(side.server, TOPIC)
    return [
        Figure("consume:rate", "consume 1 KB × 6 partitions", "MB/s", *rates, goal=RATE_GOAL),
        Figure("consume:cpu", "broker CPU, consume", "s per GB", *costs, goal=CPU_GOAL),
    ]


def drain(bench: Bench, side: Side, records: int) -> tuple[float, float]:
    """MB/s of the last pass, and CPU seconds per GB of all."""
    before = cpu_seconds(side.pid)
    told: dict[str, Any] = json.loads(bench.run_class("AssignPerf", side.server.bootstrap, TOPIC, PARTITIONS, records, PASSES))
    spent = cpu_seconds(side.pid) - before
    return float(told["mb_per_s"][-1]), spent / (told["bytes"] / 1e9)
