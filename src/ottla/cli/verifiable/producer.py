"""The `verifiable-producer` verb: the flags and events of Kafka's VerifiableProducer."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from ottla.cli.common.client_logs import client_logs_shown
from ottla.cli.common.clients import producer_config
from ottla.cli.common.options import cluster_options
from ottla.cli.common.running import client_world
from ottla.cli.common.settings import ClientSettings
from ottla.cli.perf.command import chosen_topic, topic_options
from ottla.cli.verifiable.producing import ProducePlan, VerifiableProducer
from ottla.config.client.kinds import PRODUCER

EXAMPLES = """\b
Examples:
  ottla verifiable-producer orders --max-messages 1000
  ottla verifiable-producer orders --throughput 100                until SIGTERM or Ctrl-C
  ottla verifiable-producer --topic orders --bootstrap-server localhost:9092 --acks 1 --repeating-keys 10
\b
Events: startup_complete, producer_send_success (key, value, offset, topic, partition), producer_send_error (topic, key, value,
exception, message), shutdown_complete, tool_data (sent, acked, target_throughput, avg_throughput).
\b
Exit codes: 0 done or ended by SIGTERM, 1 some records are not stored, 2 wrong usage, 130 ended by Ctrl-C.
"""


@click.command("verifiable-producer", epilog=EXAMPLES)
@topic_options
@click.option("--max-messages", type=int, default=-1, show_default=True, help="How many records to send; -1: until a signal.")
@click.option("--throughput", type=int, default=-1, show_default=True, help="Records per second at most; negative: no limit.")
@click.option(
    "--acks", type=click.Choice(["-1", "0", "1"]), default="-1", show_default=True, help="Which replicas must have a record."
)
@click.option(
    "--message-create-time", type=int, default=-1, metavar="MS", help="The first record's timestamp, in ms since 1970."
)
@click.option("--value-prefix", type=int, metavar="N", help="Send the values N.0, N.1, … in place of 0, 1, …")
@click.option(
    "--repeating-keys", type=click.IntRange(1), metavar="N", help="Send the keys 0 to N-1 in turn.  [default: no keys]"
)
@cluster_options(known=frozenset(PRODUCER.table), old_config_flag="producer")
def verifiable_producer(settings: ClientSettings, name: str | None, topic: str | None, acks: str, **flags: Any) -> int | None:
    """Send the numbers 0, 1, 2, … to TOPIC, and print a JSON event for each that was stored or failed.

    Made for system tests: nothing is retried (unless a setting says so), and SIGTERM ends it with the closing events.
    """
    if flags["throughput"] == 0:
        raise click.UsageError("--throughput 0 would never send anything: give records per second, or -1 for no limit")
    plan = ProducePlan(
        topic=chosen_topic(name, topic, "ottla verifiable-producer orders --max-messages 100"),
        messages=flags["max_messages"],
        throughput=flags["throughput"],
        value_prefix=flags["value_prefix"],
        repeating_keys=flags["repeating_keys"],
        create_time_ms=None if flags["message_create_time"] < 0 else flags["message_create_time"],
    )
    defaults = {"acks": acks, "retries": 0}
    if not {"retries", "enable.idempotence", "transactional.id"} & set(settings.properties):
        defaults["enable.idempotence"] = "false"  # which Kafka's client concludes from retries=0
    made = producer_config(settings, defaults, {})

    async def run() -> int | None:
        return await VerifiableProducer(plan, made, client_world()).run()

    with client_logs_shown():
        return asyncio.run(run())
