"""The consume rows: Kafka's own ConsumerPerformance, a group of one member, reads a topic from the page cache.

MB/s is the tool's fetch rate, without the time to join its group; the broker's CPU is that of the whole run.
"""

import csv
import os

from bench.side_by_side import produce
from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import Figure, at_least, at_most
from bench.side_by_side.processes import cpu_seconds
from bench.side_by_side.sides import Bench, Side

TOOL = "org.apache.kafka.tools.ConsumerPerformance"
TOPIC, PARTITIONS, RECORD_BYTES = "consume", 6, 1000
RECORDS, RECORDS_QUICK = 2_000_000, 400_000
RATE, COUNT = "fetch.MB.sec", "data.consumed.in.nMsg"
RATE_GOAL, CPU_GOAL = at_least(1.0), at_most(0.5)


def rows(bench: Bench) -> list[Figure]:
    produce.warm_up(bench)
    records = bench.options.scaled(RECORDS, RECORDS_QUICK)
    for side in bench.pair:
        create_topic(side.server, TOPIC, PARTITIONS)
        bench.progress.say(f"consume: filling a topic of {side.label}")
        produce.run_tool(bench, side, TOPIC, records, RECORD_BYTES)
    os.sync()  # or the fill is still written to disk during the first rounds
    for side in bench.pair:
        drain(bench, side, records, "consume-warm-up")
    rates: tuple[list[float], list[float]] = ([], [])
    costs: tuple[list[float], list[float]] = ([], [])
    for number in range(1, bench.options.rounds + 1):
        for side, kept_rates, kept_costs in zip(bench.pair, rates, costs, strict=True):
            rate, cost = drain(bench, side, records, f"consume-{number}")
            kept_rates.append(rate)
            kept_costs.append(cost)
            text = f"{side.label} {rate:.0f} MB/s, {cost:.2f} CPU s/GB"
            bench.progress.say(f"consume, round {number} of {bench.options.rounds}: {text}")
    for side in bench.pair:
        delete_topic(side.server, TOPIC)
    return [
        Figure("consume:rate", "consume 1 KB × 6 partitions", "MB/s", *rates, goal=RATE_GOAL),
        Figure("consume:cpu", "broker CPU, consume", "s per GB", *costs, goal=CPU_GOAL),
    ]


def drain(bench: Bench, side: Side, records: int, group: str) -> tuple[float, float]:
    """MB/s and the broker's CPU seconds per GB of one run of the tool, in its own group."""
    arguments = ("--bootstrap-server", side.server.bootstrap, "--topic", TOPIC, "--num-records", records, "--group", group)
    before = cpu_seconds(side.pid)
    output = bench.run_class(TOOL, *arguments)
    spent = cpu_seconds(side.pid) - before
    return parse_rate(output, records), spent / (records * RECORD_BYTES / 1e9)


def parse_rate(output: str, records: int) -> float:
    """MB/s, from the one-line table that the tool prints. Raises unless it read all records."""
    lines = [line for line in output.splitlines() if line.count(",") > 5]
    row = {name.strip(): value.strip() for name, value in next(csv.DictReader(lines), {}).items()}
    if RATE not in row or int(row[COUNT]) < records:
        raise LoadFailed(f"ConsumerPerformance did not read {records:,} records:\n{output[-2000:]}")
    return float(row[RATE])
