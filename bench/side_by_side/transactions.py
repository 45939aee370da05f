"""The row of transactions: each producer runs one at a time, with one record to each partition (Transactions.java)."""

from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.figures import Figure, at_least
from bench.side_by_side.rates import measure_rates
from bench.side_by_side.sides import Bench

TOPIC, PARTITIONS, PRODUCERS = "transacted", 3, 8
COUNT, COUNT_QUICK = 1_000, 150
WARM_UP, WARM_UP_QUICK = 500, 50
GOAL = at_least(1.0)


def rows(bench: Bench) -> list[Figure]:
    count, warm_up = bench.options.scaled(COUNT, COUNT_QUICK), bench.options.scaled(WARM_UP, WARM_UP_QUICK)
    for side in bench.pair:
        create_topic(side.server, TOPIC, PARTITIONS)
    rates = measure_rates(bench, "transactions", "Transactions", TOPIC, PARTITIONS, PRODUCERS, count, warm_up)
    for side in bench.pair:
        delete_topic(side.server, TOPIC)
    what = f"transactions of {PARTITIONS} records in {PARTITIONS} partitions, {PRODUCERS} producers"
    return [Figure("transactions:rate", what, "per s", *rates, goal=GOAL)]
