"""`ottla perf produce`: the flags and output of kafka-producer-perf-test."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping
from typing import Any

import click

from ottla.cli.common.client_logs import client_logs_shown
from ottla.cli.common.clients import ClientConfig, producer_config
from ottla.cli.common.options import cluster_options
from ottla.cli.common.output import is_for_people, print_json, print_table, say, warn
from ottla.cli.common.running import client_world
from ottla.cli.common.settings import ClientSettings
from ottla.cli.perf.numbers import finite_metrics, metric_lines
from ottla.cli.perf.options import (
    INTERRUPTED,
    chosen_topic,
    interval_option,
    metrics_option,
    output_options,
    topic_options,
)
from ottla.cli.perf.payloads import Counted, Payloads, file_payloads, random_payloads
from ottla.cli.perf.progress import ProgressBar
from ottla.cli.perf.reaching import check_topic
from ottla.cli.perf.send_statistics import HEADINGS
from ottla.cli.perf.sending import Sending, SendPlan
from ottla.client.producer.sync import Producer
from ottla.config.client.kinds import PRODUCER
from ottla.errors import OttlaError
from ottla.errors.texts import counted

EXAMPLES = """\b
Examples:
  ottla perf produce load                                        1,000,000 records of 100 bytes, as fast as possible
  ottla perf produce load --num-records 50000 --record-size 1000 --throughput 10000
  ottla perf produce load --payload-file orders.txt --command-property compression.type=zstd linger.ms=20
  ottla perf produce load --transaction-duration-ms 500          in transactions
  ottla perf produce --topic load --num-records 1000 --record-size 100 --throughput -1 \\
      --producer-props bootstrap.servers=localhost:9092 acks=1   Kafka's spelling
\b
Exit codes: 0 all records are stored, 1 some are not, 2 wrong usage, 130 interrupted.
"""

CLIENT_ID = "perf-producer-client"
TRANSACTION_MS = 3000
RECORD_SIZE = 100
_CLOSE_S = 5.0
_ERRORS_SHOWN_MAX = 5


@click.command("produce", epilog=EXAMPLES)
@topic_options
@click.option("--num-records", type=click.IntRange(1), default=1_000_000, show_default=True, help="How many records to send.")
@click.option(
    "--record-size", type=click.IntRange(1), metavar="BYTES", help=f"Size of random values.  [default: {RECORD_SIZE}]"
)
@click.option("--payload-file", metavar="FILE", help="Choose each value at random from the parts of this file.")
@click.option(
    "--payload-delimiter",
    default="\\n",
    show_default=True,
    metavar="REGEX",
    help="What is between the parts of --payload-file.",
)
@click.option("--payload-monotonic", is_flag=True, help="Send the numbers 0, 1, 2, … as values.")
@click.option(
    "--throughput", type=float, default=-1, show_default=True, metavar="N", help="Records per second at most; -1: no limit."
)
@click.option("--transactional-id", metavar="ID", help="Send in transactions, with this id.  [default: a random one]")
@click.option(
    "--transaction-duration-ms",
    type=click.IntRange(1),
    metavar="MS",
    help=f"Send in transactions, and commit each after this time.  [default: {TRANSACTION_MS}]",
)
@click.option(
    "--warmup-records",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Leave the first records out of a second summary, that of the steady state.",
)
@interval_option
@metrics_option
@output_options
@cluster_options(known=frozenset(PRODUCER.table), old_config_flag="producer", property_flags=("--producer-props",))
def produce(
    settings: ClientSettings, name: str | None, topic: str | None, as_json: bool, plain: bool, **flags: Any
) -> int | None:
    """Send records to TOPIC, and show how many per second were stored and how long that took.

    A latency is the time from `send` until the record is acknowledged: waiting in the producer is part of it, so without
    --throughput it mostly shows how long records wait for those before them. All producer settings of Kafka are taken by
    --command-property and --command-config.
    """
    chosen = chosen_topic(name, topic, "ottla perf produce load --num-records 100000")
    is_plain = not as_json and not is_for_people(as_json, plain)
    transaction_ms = _transaction_ms(settings, flags)
    if flags["warmup_records"] >= flags["num_records"]:
        raise click.UsageError("--warmup-records must be less than --num-records, or no record is left for the steady state")
    if flags["throughput"] == 0:
        raise click.UsageError("--throughput 0 would never send anything: give records per second, or -1 for no limit")
    plan = SendPlan(
        topic=chosen,
        records=flags["num_records"],
        payloads=_payloads(flags, is_plain),
        throughput=flags["throughput"],
        warmup=flags["warmup_records"],
        transaction_ms=transaction_ms,
        interval_ms=flags["interval_ms"],
    )
    made = _config(settings, flags, transaction_ms is not None)
    check_topic(settings, chosen)
    if plan.warmup and is_plain:
        say(f"Warmup first {plan.warmup} records. Steady state results will print after the complete test summary.")
    return _run(plan, made, as_json, is_plain, flags["print_metrics"])


def _payloads(flags: Mapping[str, Any], is_plain: bool) -> Payloads:
    given = [flag for flag in ("record_size", "payload_file", "payload_monotonic") if flags[flag]]
    if len(given) > 1:
        named = " and ".join(f"--{flag.replace('_', '-')}" for flag in given)
        raise click.UsageError(f"{named} both say what to send: choose one")
    if flags["payload_monotonic"]:
        return Counted()
    if flags["payload_file"] is None:
        return random_payloads(flags["record_size"] or RECORD_SIZE, flags["num_records"])
    found, parts = file_payloads(flags["payload_file"], flags["payload_delimiter"], flags["num_records"])
    if is_plain:
        say(f"Reading payloads from: {os.path.abspath(flags['payload_file'])}")
        say(f"Number of records read: {parts}")
    return found


def _transaction_ms(settings: ClientSettings, flags: Mapping[str, Any]) -> int | None:
    given: int | None = flags["transaction_duration_ms"]
    is_wanted = given is not None or flags["transactional_id"] is not None or "transactional.id" in settings.properties
    return (given or TRANSACTION_MS) if is_wanted else None


def _config(settings: ClientSettings, flags: Mapping[str, Any], is_transactional: bool) -> ClientConfig:
    defaults = {"client.id": CLIENT_ID}
    if is_transactional:
        defaults["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    return producer_config(settings, defaults, {"transactional.id": flags["transactional_id"]})


def _run(plan: SendPlan, made: ClientConfig, as_json: bool, is_plain: bool, with_metrics: bool) -> int | None:
    bar = ProgressBar(plan.records, not as_json and not is_plain, time.monotonic())
    interrupted: BaseException | None = None
    with client_logs_shown():
        producer: Producer[bytes, bytes] = Producer(config=made.config, world=client_world(), **made.login)
        try:
            producer.partitions_for(plan.topic)
            if plan.transaction_ms is not None:
                producer.init_transactions()
            sending = Sending(producer, plan, lambda lines: _print_lines(lines) if is_plain else None, bar.show)
            try:
                sending.run()
            except (KeyboardInterrupt, OttlaError) as error:
                interrupted = error  # what was stored before is shown all the same
            bar.clear()
            _print_results(sending, plan, as_json, is_plain, producer.metrics() if with_metrics else None, made)
        finally:
            bar.clear()
            producer.close(None if interrupted is None else _CLOSE_S)
    if isinstance(interrupted, OttlaError):
        raise interrupted
    return INTERRUPTED if interrupted is not None else _failed(sending)


def _failed(sending: Sending) -> int | None:
    for text, count in sending.failures.most_common(_ERRORS_SHOWN_MAX):
        warn(f"{counted(count, 'record')} {'was' if count == 1 else 'were'} not stored: {text}")
    return 1 if sending.failures else None


def _print_lines(lines: list[str]) -> None:
    for line in lines:
        say(line)


def _print_results(
    sending: Sending,
    plan: SendPlan,
    as_json: bool,
    is_plain: bool,
    metrics: Mapping[str, Mapping[str, float]] | None,
    made: ClientConfig,
) -> None:
    now_s = time.monotonic()
    statistics = [each for each in (sending.all, sending.steady) if each is not None]
    if as_json:
        found: dict[str, Any] = {"topic": plan.topic, **sending.all.as_json(now_s), "failed": sending.failures.total()}
        if sending.steady is not None:
            found["steadyState"] = sending.steady.as_json(now_s)
        print_json(found | ({} if metrics is None else {"metrics": finite_metrics(metrics)}))
        return
    if is_plain:
        _print_lines([each.total_line(now_s) for each in statistics])
    else:
        print_table(f"Sent to {plan.topic}", HEADINGS, [each.row(now_s) for each in statistics])
    if metrics is not None:
        _print_lines(list(metric_lines(metrics, made.config["client.id"])))
