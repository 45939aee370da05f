"""The row of offset commits: consumers commit ten partitions at a time, one commit after the other (CommitOffsets.java)."""

from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.figures import Figure, at_least
from bench.side_by_side.rates import measure_rates
from bench.side_by_side.sides import Bench

TOPIC, PARTITIONS, CONSUMERS = "committed", 10, 8
COMMITS, COMMITS_QUICK = 4_000, 500
WARM_UP, WARM_UP_QUICK = 2_000, 200
GOAL = at_least(1.0)


def rows(bench: Bench) -> list[Figure]:
    commits, warm_up = bench.options.scaled(COMMITS, COMMITS_QUICK), bench.options.scaled(WARM_UP, WARM_UP_QUICK)
    for side in bench.pair:
        create_topic(side.server, TOPIC, PARTITIONS)
    rates = measure_rates(bench, "committed offsets", "CommitOffsets", TOPIC, PARTITIONS, CONSUMERS, commits, warm_up)
    for side in bench.pair:
        delete_topic(side.server, TOPIC)
    return [Figure("offsets:rate", f"committed offsets, {CONSUMERS} consumers", "per s", *rates, goal=GOAL)]
