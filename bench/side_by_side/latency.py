"""The latency rows: one record at a time with acks=all, from before its send until a waiting consumer has it.

bench/java/OneAtATime.java does what Kafka's EndToEndLatency does, without a group.
"""

import json

from bench.side_by_side import produce
from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.figures import Figure, at_most
from bench.side_by_side.sides import Bench

TOPIC = "latency"
RECORDS, RECORDS_QUICK = 10_000, 1_000
WARM_UP_RECORDS, WARM_UP_RECORDS_QUICK = 2_000, 300
RECORD_BYTES = 100
GOAL = at_most(1.0)


def rows(bench: Bench) -> list[Figure]:
    produce.warm_up(bench)
    records = bench.options.scaled(RECORDS, RECORDS_QUICK)
    warm_up = bench.options.scaled(WARM_UP_RECORDS, WARM_UP_RECORDS_QUICK)
    p50: tuple[list[float], list[float]] = ([], [])
    p99: tuple[list[float], list[float]] = ([], [])
    for number in range(1, bench.options.rounds + 1):
        for side, middles, tails in zip(bench.pair, p50, p99, strict=True):
            create_topic(side.server, TOPIC, 1)
            told = json.loads(bench.run_class("OneAtATime", side.server.bootstrap, TOPIC, records, warm_up, RECORD_BYTES))
            delete_topic(side.server, TOPIC)
            middles.append(told["p50_us"] / 1000)
            tails.append(told["p99_us"] / 1000)
            figures = f"{side.label} p50 {middles[-1]:.2f} ms, p99 {tails[-1]:.2f} ms"
            bench.progress.say(f"end-to-end latency, round {number} of {bench.options.rounds}: {figures}")
    return [
        Figure("latency:p50", "end-to-end latency, one record at a time, p50", "ms", *p50, goal=GOAL),
        Figure("latency:p99", "end-to-end latency, one record at a time, p99", "ms", *p99, goal=GOAL),
    ]
