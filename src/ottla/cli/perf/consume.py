"""`ottla perf consume`: the flags and output of kafka-consumer-perf-test."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from typing import Any

import click

from ottla.cli.common.client_logs import client_logs_shown
from ottla.cli.common.clients import ClientConfig, consumer_config
from ottla.cli.common.options import cluster_options, retired
from ottla.cli.common.output import is_for_people, print_json, print_table, say
from ottla.cli.common.running import client_world, with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.perf.date_format import KAFKAS, DateFormat
from ottla.cli.perf.numbers import finite_metrics, metric_lines
from ottla.cli.perf.options import (
    INTERRUPTED,
    chosen_topic,
    interval_option,
    metrics_option,
    output_options,
    topic_options,
)
from ottla.cli.perf.progress import ProgressBar
from ottla.cli.perf.read_statistics import DETAILED_HEADER, HEADER, HEADINGS
from ottla.cli.perf.reading import BytesConsumer, Reading, ReadPlan, now_ms
from ottla.client.consumer.sync import Consumer
from ottla.config.client.kinds import CONSUMER
from ottla.errors import OttlaError

EXAMPLES = """\b
Examples:
  ottla perf consume load                                   1,000,000 records from the beginning
  ottla perf consume load --num-records 50000 --show-detailed-stats --reporting-interval 1000 --plain
  ottla perf consume --include 'load-.*' --num-records 50000 --timeout 3000 --json
  ottla perf consume --topic load --messages 1000 --bootstrap-server localhost:9092     Kafka's spelling
\b
Exit codes: 0 done, also if --timeout ended it early (as Kafka's tool), 1 failed, 2 wrong usage, 130 interrupted.
"""

CLIENT_ID = "perf-consumer-client"
FETCH_SIZE = 1024 * 1024


@click.command("consume", epilog=EXAMPLES)
@topic_options
@click.option("--include", metavar="REGEX", help="Read all topics whose names match, in place of TOPIC.")
@click.option(
    "--num-records",
    "--messages",
    "num_records",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="How many records to read.",
)
@click.option("--group", metavar="ID", help="The consumer group.  [default: perf-consumer- and a random number]")
@click.option(
    "--fetch-size", type=click.IntRange(0), metavar="BYTES", help=f"max.partition.fetch.bytes.  [default: {FETCH_SIZE}]"
)
@click.option("--from-latest", is_flag=True, help="Start at the end where the group has no offset, not at the beginning.")
@click.option("--socket-buffer-size", type=click.IntRange(-1), metavar="BYTES", help="receive.buffer.bytes.")
@click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(0),
    default=10_000,
    show_default=True,
    metavar="MS",
    help="Stop when no record has come for so long.",
)
@interval_option
@click.option("--show-detailed-stats", "is_detailed", is_flag=True, help="Print a line for each interval, and none at the end.")
@click.option("--hide-header", is_flag=True, help="Do not print the names of the columns.")
@click.option("--date-format", default=KAFKAS, show_default=True, metavar="PATTERN", help="As Java's SimpleDateFormat has it.")
@retired("--threads", "one consumer is one thread: start more commands with the same --group")
@retired("--num-fetch-threads", "one consumer is one thread: start more commands with the same --group")
@metrics_option
@output_options
@cluster_options(known=frozenset(CONSUMER.table), old_config_flag="consumer")
def consume(
    settings: ClientSettings, name: str | None, topic: str | None, as_json: bool, plain: bool, **flags: Any
) -> int | None:
    """Read records of TOPIC as a member of a group, and show how many came per second.

    Kafka's tool counts the time until the first partitions are assigned as rebalance time; what is left is fetch time. All
    consumer settings of Kafka are taken by --command-property and --command-config.
    """
    date_format = DateFormat(flags["date_format"])
    plan = ReadPlan(
        topics=_topics(name, topic, flags["include"]),
        records=flags["num_records"],
        timeout_ms=flags["timeout_ms"],
        interval_ms=flags["interval_ms"],
        is_detailed=flags["is_detailed"],
    )
    made = _config(settings, flags)
    with_cluster(settings, lambda cluster: cluster.metadata([]))  # a consumer would wait for brokers that are not there
    is_plain = not as_json and not is_for_people(as_json, plain)
    if is_plain and not flags["hide_header"]:
        say(DETAILED_HEADER if plan.is_detailed else HEADER)
    return _run(plan, made, date_format, as_json, is_plain, flags["print_metrics"])


def _topics(name: str | None, topic: str | None, include: str | None) -> list[str] | re.Pattern[str]:
    if include is None:
        return [chosen_topic(name, topic, "ottla perf consume load --num-records 100000")]
    if name is not None or topic is not None:
        raise click.UsageError("--include and a topic: give one of them")
    try:
        return re.compile(include)
    except re.error as error:
        raise click.UsageError(f"--include: {include!r} is not a regular expression: {error}") from None


def _config(settings: ClientSettings, flags: Mapping[str, Any]) -> ClientConfig:
    defaults = {
        "client.id": CLIENT_ID,
        "group.id": f"perf-consumer-{random.randrange(100_000)}",
        "auto.offset.reset": "earliest",
        "max.partition.fetch.bytes": FETCH_SIZE,
        "check.crcs": "false",
    }
    given = {
        "group.id": flags["group"],
        "auto.offset.reset": "latest" if flags["from_latest"] else None,
        "max.partition.fetch.bytes": flags["fetch_size"],
        "receive.buffer.bytes": flags["socket_buffer_size"],
    }
    return consumer_config(settings, defaults, given)


def _run(
    plan: ReadPlan, made: ClientConfig, date_format: DateFormat, as_json: bool, is_plain: bool, with_metrics: bool
) -> int | None:
    bar = ProgressBar(plan.records, not as_json and not is_plain, time.monotonic())
    stopped: BaseException | None = None
    with client_logs_shown():
        consumer: BytesConsumer = Consumer(config=made.config, world=client_world(), **made.login)
        reading = Reading(consumer, plan, date_format, say if is_plain and plan.is_detailed else _ignore, bar.show)
        is_complete = True
        with consumer:
            try:
                is_complete = reading.run()
            except (KeyboardInterrupt, OttlaError) as error:
                stopped = error
            end_ms = now_ms()
            metrics = consumer.metrics() if with_metrics else None
    bar.clear()
    if not is_complete and not as_json:
        say(
            "WARNING: Exiting before consuming the expected number of records: "
            f"timeout ({plan.timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
        )
    _print_results(reading, end_ms, date_format, as_json, is_plain, metrics, made)
    if isinstance(stopped, OttlaError):
        raise stopped
    return INTERRUPTED if stopped is not None else None


def _ignore(line: str) -> None:
    pass


def _print_results(
    reading: Reading,
    end_ms: int,
    date_format: DateFormat,
    as_json: bool,
    is_plain: bool,
    metrics: Mapping[str, Mapping[str, float]] | None,
    made: ClientConfig,
) -> None:
    statistics = reading.statistics
    if as_json:
        found = statistics.as_json(end_ms)
        print_json(found | ({} if metrics is None else {"metrics": finite_metrics(metrics)}))
        return
    if not is_plain:
        print_table(None, HEADINGS, [statistics.row(end_ms)])
    elif not reading.plan.is_detailed:
        say(statistics.total_line(end_ms, date_format))
    if metrics is not None:
        for line in metric_lines(metrics, made.config["client.id"]):
            say(line)
