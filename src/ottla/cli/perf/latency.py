"""`ottla perf latency`: the flags and output of kafka-e2e-latency."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ottla.cli.common.client_logs import client_logs_shown
from ottla.cli.common.clients import consumer_config, producer_config
from ottla.cli.common.completion import complete_topics
from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.perf.numbers import finite, fixed
from ottla.cli.perf.options import INTERRUPTED, chosen_topic, output_options
from ottla.cli.perf.progress import ProgressBar
from ottla.cli.perf.round_trips import REPORT_EVERY, TripPlan, create_if_missing, measure
from ottla.client.cluster import Cluster
from ottla.config.client.kinds import CONSUMER, PRODUCER

EXAMPLES = """\b
Examples:
  ottla perf latency load                                            1,000 records of 100 bytes, acks=all
  ottla perf latency load --num-records 10000 --producer-acks 1 --record-size 1000
  ottla perf latency load --record-key-size 8 --num-headers 2 --record-header-key-size 4 --record-header-size 16
  ottla perf latency localhost:9092 load 1000 all 100                Kafka's old spelling: address, topic, records, acks, size
\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

HEADINGS = ("#Records", "#Avg ms", "#Min", "#p50", "#p95", "#p99", "#p99.9", "#Max")
_OLD_NAMES = ("bootstrap_server", "topic", "num_records", "producer_acks", "record_size", "command_config")


class LatencyCommand(click.Command):
    """Reads Kafka's old spelling, too: five or six arguments without names."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if len(args) in (5, 6) and not any(arg.startswith("-") for arg in args):
            warn(
                "arguments without names are deprecated, and gone in Kafka 5: name them with --bootstrap-server, --topic, "
                "--num-records, --producer-acks, --record-size and --command-config"
            )
            names = [f"--{name.replace('_', '-')}" for name in _OLD_NAMES]
            args = [word for pair in zip(names, args, strict=False) for word in pair if pair[1]]
        return super().parse_args(ctx, args)


@click.command("latency", cls=LatencyCommand, epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[TOPIC]", shell_complete=complete_topics)
@click.option("--topic", metavar="NAME", shell_complete=complete_topics, help="Kafka's spelling of TOPIC.")
@click.option("--num-records", type=click.IntRange(1), default=1000, show_default=True, help="How many records to send.")
@click.option(
    "--producer-acks",
    type=click.Choice(["1", "all"]),
    default="all",
    show_default=True,
    help="Which replicas must have stored a record.",
)
@click.option("--record-size", type=click.IntRange(0), default=100, show_default=True, metavar="BYTES", help="Size of values.")
@click.option("--record-key-size", type=click.IntRange(0), default=0, metavar="BYTES", help="Size of keys.  [default: no key]")
@click.option("--num-headers", type=click.IntRange(0), default=0, show_default=True, help="How many headers a record has.")
@click.option("--record-header-key-size", type=click.IntRange(0), default=0, metavar="BYTES", help="Size of the headers' keys.")
@click.option(
    "--record-header-size", type=click.IntRange(-1), default=0, metavar="BYTES", help="Size of the headers' values; -1: null."
)
@output_options
@cluster_options(known=frozenset({*PRODUCER.table, *CONSUMER.table}))
def latency(
    settings: ClientSettings, name: str | None, topic: str | None, as_json: bool, plain: bool, **flags: Any
) -> int | None:
    """Send records to TOPIC one by one, and show how long each takes to arrive at a consumer.

    The time runs from `send` until the consumer has the record, with the acknowledgement in between. Nothing else may write to
    the topic during the test; it is created if it does not exist.
    """
    chosen = chosen_topic(name, topic, "ottla perf latency load --num-records 1000")
    plan = TripPlan(
        topic=chosen,
        records=flags["num_records"],
        record_size=flags["record_size"],
        key_size=flags["record_key_size"],
        headers=flags["num_headers"],
        header_key_size=flags["record_header_key_size"],
        header_size=flags["record_header_size"],
    )
    is_plain = not as_json and not is_for_people(as_json, plain)
    run = _Run(plan, settings, flags, as_json, is_plain)
    code = None
    try:
        with client_logs_shown():
            with_cluster(settings, run.measure, is_patient=True)
    except KeyboardInterrupt:
        code = INTERRUPTED
    finally:
        run.bar.clear()
    if run.latencies_ns:
        run.print_results()
    return code


class _Run:
    def __init__(
        self, plan: TripPlan, settings: ClientSettings, flags: Mapping[str, Any], as_json: bool, is_plain: bool
    ) -> None:
        self._plan = plan
        self._as_json = as_json
        self._is_plain = is_plain
        acks = flags["producer_acks"]
        weak = {"enable.idempotence": "false"} if acks == "1" else {}  # what acks=1 means: no notice about it
        self._producer = producer_config(settings, weak, {"acks": acks, "linger.ms": 0})
        # Kafka's tool sets fetch.max.wait.ms to 0. A long poll is answered as soon as the record is there, and leaves the
        # processor to the broker.
        self._consumer = consumer_config(settings, {}, {"enable.auto.commit": "false", "auto.offset.reset": "latest"})
        self.latencies_ns: list[int] = []
        self.bar = ProgressBar(plan.records, not as_json and not is_plain, time.monotonic())

    async def measure(self, cluster: Cluster) -> None:
        await create_if_missing(cluster, self._plan.topic, _ignore if self._as_json else say)
        await measure(self._plan, self._producer, self._consumer, cluster.world, self._note)

    def _note(self, number: int, elapsed_ns: int) -> None:
        self.latencies_ns.append(elapsed_ns)
        if self._is_plain and number % REPORT_EVERY == 0:
            say(str(number), str(elapsed_ns / 1000.0 / 1000.0))
        self.bar.show(number + 1, (number + 1) * self._plan.record_size, time.monotonic())

    def print_results(self) -> None:
        """Print what was measured, also of a run that was interrupted."""
        found = sorted(each / 1e6 for each in self.latencies_ns)
        average = sum(found) / len(found)
        p50, p95, p99, p999 = (found[int(len(found) * share)] for share in (0.5, 0.95, 0.99, 0.999))
        if self._as_json:
            numbers = {"avg": average, "min": found[0], "p50": p50, "p95": p95, "p99": p99, "p999": p999, "max": found[-1]}
            latency_ms = {name: finite(number, 4) for name, number in numbers.items()}
            print_json({"topic": self._plan.topic, "records": len(found), "latencyMs": latency_ms})
        elif self._is_plain:
            say(f"Avg latency: {fixed(average, 4)} ms")
            say(f"Percentiles: 50th = {int(p50)}, 99th = {int(p99)}, 99.9th = {int(p999)}")
        else:
            _print_table(self._plan.topic, len(found), (average, found[0], p50, p95, p99, p999, found[-1]))


def _print_table(topic: str, records: int, numbers: Sequence[float]) -> None:
    print_table(f"From send to arrival, {topic}", HEADINGS, [(f"{records:,}", *(f"{each:,.2f}" for each in numbers))])


def _ignore(line: str) -> None:
    pass
