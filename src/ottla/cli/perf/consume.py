"""`ottla perf consume`: reads records as a member of a group, and measures how many per second come."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from ottla.cli.common.clients import ClientConfig, client_logs_shown, consumer_config
from ottla.cli.common.connection import client_world, with_cluster
from ottla.cli.common.options import cluster_options, refused
from ottla.cli.common.output import print_json, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.perf.command import (
    INTERRUPTED,
    MB,
    Progress,
    chosen_topic,
    finite,
    finite_metrics,
    interval_option,
    metrics_option,
    output_options,
    print_figures,
    print_metrics,
    ratio,
    topic_options,
)
from ottla.client.consumer.sync import Consumer
from ottla.config.client.kinds import CONSUMER
from ottla.errors import OttlaError

EXAMPLES = """\b
Examples:
  ottla perf consume load                                   1,000,000 records from the beginning
  ottla perf consume --include 'load-.*' --num-records 50000 --timeout 3000 --json
  ottla perf consume --topic load --messages 1000 --bootstrap-server localhost:9092     Kafka's spelling
\b
Exit codes: 0 done, also if --timeout ended it early (as Kafka's tool), 1 failed, 2 wrong usage, 130 interrupted.
"""

NO_LINES = "there are no comma-separated lines here: progress goes to standard error, and --json prints the figures"
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
@refused(
    "--show-detailed-stats",
    "there is no line for each interval: progress goes to standard error, the result to --json",
    takes_value=False,
)
@refused("--hide-header", NO_LINES, takes_value=False)
@refused("--date-format", NO_LINES)
@metrics_option
@output_options
@cluster_options(known=frozenset(CONSUMER.table), old_config_flag="consumer")
def consume(settings: ClientSettings, name: str | None, topic: str | None, as_json: bool, **flags: Any) -> int | None:
    """Read records of TOPIC as a member of a group, and show how many came per second.

    Kafka's tool counts the time until the first partitions are assigned as rebalance time; what is left is fetch time. All
    consumer settings of Kafka are taken by --command-property and --command-config.
    """
    plan = ReadPlan(
        topics=_topics(name, topic, flags["include"]),
        records=flags["num_records"],
        timeout_ms=flags["timeout_ms"],
    )
    made = _config(settings, flags)
    with_cluster(settings, lambda cluster: cluster.metadata([]))  # a consumer would wait for brokers that are not there
    return _run(plan, made, as_json, flags["interval_ms"], flags["print_metrics"])


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


def _run(plan: ReadPlan, made: ClientConfig, as_json: bool, interval_ms: int, with_metrics: bool) -> int | None:
    progress = Progress(plan.records, not as_json, time.monotonic(), interval_ms)
    stopped: BaseException | None = None
    with client_logs_shown():
        consumer: BytesConsumer = Consumer(config=made.config, world=client_world(), **made.login)
        reading = Reading(consumer, plan, progress.show)
        is_complete = True
        with consumer:
            try:
                is_complete = reading.run()
            except (KeyboardInterrupt, OttlaError) as error:
                stopped = error
            end_ms = now_ms()
            metrics = consumer.metrics() if with_metrics else None
    progress.clear()
    if not is_complete:
        warn(f"fewer records than wanted: none came for {plan.timeout_ms} ms (--timeout)")
    if as_json:
        found = reading.statistics.as_json(end_ms)
        print_json(found | ({} if metrics is None else {"metrics": finite_metrics(metrics)}))
    else:
        print_figures(None, HEADINGS, [reading.statistics.row(end_ms)])
        if metrics is not None:
            print_metrics(metrics)
    if isinstance(stopped, OttlaError):
        raise stopped
    return INTERRUPTED if stopped is not None else None


HEADINGS = ("#Records", "#Records/s", "#MB", "#MB/s", "#Rebalance ms", "#Fetch ms", "#Fetched/s", "#Fetched MB/s")


class ReadStatistics:
    """Records, bytes and the time of rebalances. Pure. Times are milliseconds since 1970."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self._join_start_ms = start_ms
        self.records = self.size_bytes = self.join_ms = 0

    def add(self, records: int, size_bytes: int) -> None:
        """Count what a poll has returned."""
        self.records += records
        self.size_bytes += size_bytes

    def rebalance_began(self, now_ms: int) -> None:
        self._join_start_ms = now_ms

    def rebalance_ended(self, now_ms: int) -> None:
        """Partitions were assigned. The first join counts from the start of the consumer."""
        self.join_ms += now_ms - self._join_start_ms

    def row(self, end_ms: int) -> tuple[object, ...]:
        """The cells of a table, under `HEADINGS`."""
        seconds, fetch_ms, mb = (end_ms - self.start_ms) / 1000, end_ms - self.start_ms - self.join_ms, self.size_bytes / MB
        fetched = (f"{ratio(self.records, fetch_ms / 1000):,.0f}", f"{ratio(mb, fetch_ms / 1000):,.1f}")
        per_second = (f"{ratio(self.records, seconds):,.0f}", f"{mb:,.1f}", f"{ratio(mb, seconds):,.1f}")
        return (f"{self.records:,}", *per_second, f"{self.join_ms:,}", f"{fetch_ms:,}", *fetched)

    def as_json(self, end_ms: int) -> dict[str, Any]:
        seconds, fetch_ms = (end_ms - self.start_ms) / 1000, end_ms - self.start_ms - self.join_ms
        return {
            "records": self.records,
            "bytes": self.size_bytes,
            "startTimeMs": self.start_ms,
            "endTimeMs": end_ms,
            "recordsPerSec": finite(ratio(self.records, seconds)),
            "mbPerSec": finite(ratio(self.size_bytes / MB, seconds)),
            "rebalanceTimeMs": self.join_ms,
            "fetchTimeMs": fetch_ms,
            "fetchRecordsPerSec": finite(ratio(self.records, fetch_ms / 1000)),
            "fetchMbPerSec": finite(ratio(self.size_bytes / MB, fetch_ms / 1000)),
        }


POLL_S = 0.1
TAIL_RECORDS = 20_000
"""How many of the last records are taken one by one; more, if a poll returns more."""

BytesConsumer = Consumer[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What to read, and when to stop."""

    topics: list[str] | re.Pattern[str]
    records: int
    timeout_ms: int = 10_000
    """Stop when no record has come for so long."""


class Reading:
    """The loop: polls a consumer, and counts records and bytes. `progress` gets (records, bytes, now) after each poll.

    Fetched batches are taken as columns, without an object per record. Only the last records are taken one by one, so that not
    many more are read than were asked for.
    """

    def __init__(
        self,
        consumer: BytesConsumer,
        plan: ReadPlan,
        progress: Callable[[int, int, float], object],
    ) -> None:
        self._consumer = consumer
        self.plan = plan
        self._progress = progress
        self._poll_records_max = TAIL_RECORDS // 2
        self.statistics = ReadStatistics(now_ms())

    def run(self) -> bool:
        """Read until enough has come; returns False if nothing more came in time."""
        plan, statistics = self.plan, self.statistics
        self._consumer.subscribe(
            plan.topics,
            on_assigned=lambda _: statistics.rebalance_ended(now_ms()),
            on_revoked=lambda _: statistics.rebalance_began(now_ms()),
        )
        last_ms = now_ms()
        while statistics.records < plan.records:
            found = self._poll()
            current_ms = now_ms()
            if found:
                last_ms = current_ms
                self._progress(statistics.records, statistics.size_bytes, time.monotonic())
            elif current_ms - last_ms > plan.timeout_ms:
                return False
        return True

    def _poll(self) -> int:
        """Take and count what is there; returns how many records."""
        left = self.plan.records - self.statistics.records
        records = size_bytes = 0
        if left > 2 * self._poll_records_max:
            for columns in self._consumer.consume_columns(POLL_S).values():
                records += columns.rows
                size_bytes += len(columns.keys.data) + len(columns.values.data)
            self._poll_records_max = max(self._poll_records_max, records)
        else:
            for taken in self._consumer.batches(POLL_S, left).values():
                records += len(taken)
                size_bytes += sum([len(each.value or b"") + len(each.key or b"") for each in taken])
        self.statistics.add(records, size_bytes)
        return records


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
