"""The `verifiable-consumer` verb: the flags and events of Kafka's VerifiableConsumer."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from ottla.cli.common.client_logs import client_logs_shown
from ottla.cli.common.clients import consumer_config
from ottla.cli.common.options import cluster_options
from ottla.cli.common.running import client_world
from ottla.cli.common.settings import ClientSettings, whole_number
from ottla.cli.perf.command import chosen_topic, topic_options
from ottla.cli.verifiable.consuming import ConsumePlan, VerifiableConsumer
from ottla.config.client.kinds import CONSUMER

EXAMPLES = """\b
Examples:
  ottla verifiable-consumer orders --group-id billing --max-messages 1000
  ottla verifiable-consumer orders --group-id billing --verbose              until SIGTERM or Ctrl-C
  ottla verifiable-consumer orders --group-id billing --group-protocol consumer --group-remote-assignor uniform
\b
Events: startup_complete, partitions_assigned and partitions_revoked (partitions), record_data (with --verbose: key, value,
topic, partition, offset), records_consumed (count, partitions), offsets_committed (offsets, error, success),
shutdown_requested, shutdown_complete.
\b
Exit codes: 0 done or ended by SIGTERM, 1 failed, 2 wrong usage, 130 ended by Ctrl-C.
"""

RANGE = "org.apache.kafka.clients.consumer.RangeAssignor"


@click.command("verifiable-consumer", epilog=EXAMPLES)
@topic_options
@click.option("--group-id", "--group", "group_id", required=True, metavar="ID", help="The consumer group.")
@click.option(
    "--group-protocol",
    type=click.Choice(["classic", "consumer"], case_sensitive=False),
    default="classic",
    show_default=True,
    help="The group's protocol; consumer is that of KIP-848.",
)
@click.option("--group-remote-assignor", metavar="NAME", help="The broker's assignor, with --group-protocol consumer.")
@click.option("--group-instance-id", metavar="ID", help="Makes a static member.")
@click.option("--max-messages", type=int, default=-1, show_default=True, help="How many records to read; -1: until a signal.")
@click.option("--session-timeout", type=click.IntRange(1), metavar="MS", help="session.timeout.ms, for the classic protocol.")
@click.option("--verbose", is_flag=True, help="Print an event for each record.")
@click.option("--enable-autocommit", is_flag=True, help="Commit automatically, not after each poll.")
@click.option(
    "--reset-policy",
    default="earliest",
    show_default=True,
    metavar="earliest|latest|none",
    help="Where to start without a committed offset.",
)
@click.option(
    "--assignment-strategy", default=RANGE, metavar="CLASS", help="The assignor of the classic protocol.  [default: range]"
)
@cluster_options(known=frozenset(CONSUMER.table), old_config_flag="consumer")
def verifiable_consumer(settings: ClientSettings, name: str | None, topic: str | None, **flags: Any) -> int | None:
    """Read TOPIC as a member of a group, and print a JSON event for each step: assignments, records, commits.

    Made for system tests. SIGTERM ends it with the closing events.
    """
    chosen = chosen_topic(name, topic, "ottla verifiable-consumer orders --group-id billing")
    is_classic = flags["group_protocol"].lower() == "classic"
    given = {
        "group.id": flags["group_id"],
        "group.instance.id": flags["group_instance_id"],
        "enable.auto.commit": "true" if flags["enable_autocommit"] else "false",
        "auto.offset.reset": flags["reset_policy"],
        "session.timeout.ms": flags["session_timeout"],
    }
    if is_classic:
        given["partition.assignment.strategy"] = flags["assignment_strategy"]
    else:
        given |= {"group.protocol": "consumer", "group.remote.assignor": flags["group_remote_assignor"]}
    made = consumer_config(settings, {}, given)
    plan = ConsumePlan(
        topic=chosen,
        messages=flags["max_messages"],
        poll_records=whole_number("max.poll.records", str(made.config.get("max.poll.records", 500)), 1),
        is_verbose=flags["verbose"],
        commits=not flags["enable_autocommit"],
    )

    async def run() -> int | None:
        return await VerifiableConsumer(plan, made, client_world()).run()

    with client_logs_shown():
        return asyncio.run(run())
