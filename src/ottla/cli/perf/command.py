"""The `perf` verb: its actions, each imported when used."""

import click

from ottla.cli.common.spelling import Actions

EXAMPLES = """\b
Examples:
  ottla perf produce load --num-records 1000000 --record-size 100
  ottla perf consume load --num-records 1000000
  ottla perf latency load --num-records 1000
\b
Kafka's names of the same tools work, too: ottla producer-perf-test, consumer-perf-test and e2e-latency.
"""

_HERE = "ottla.cli.perf"
ACTIONS = {
    "produce": (f"{_HERE}.produce", "produce", "Send records as fast as possible, or at a given rate."),
    "consume": (f"{_HERE}.consume", "consume", "Read records as fast as possible."),
    "latency": (f"{_HERE}.latency", "latency", "Send records one by one, and wait for each to arrive at a consumer."),
}


@click.command("perf", cls=Actions, actions=ACTIONS, epilog=EXAMPLES)
def perf() -> None:
    """Measure throughput and latency of a cluster.

    The output is a table on a terminal, the lines of Kafka's perf tools in a pipe (or with --plain), JSON with --json.
    `ottla perf ACTION --help` shows the flags of an action.
    """
