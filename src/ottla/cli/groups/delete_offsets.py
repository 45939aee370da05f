"""`ottla groups delete-offsets`."""

from __future__ import annotations

import click

from ottla.cli.common.completion import complete_topics
from ottla.cli.common.explaining import explain
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, print_json, print_padded, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.choosing import complete_groups, parse_topics, timeout_option, with_timeout
from ottla.client.admin.group_offsets import delete_consumer_group_offsets
from ottla.client.admin.topic_descriptions import describe_topics
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.ids import TopicPartition

EXAMPLES = """\b
Examples:
  ottla groups delete-offsets billing --topic orders
  ottla groups delete-offsets billing --topic orders:0,1 --topic prices
"""

Results = dict[TopicPartition, KafkaError | None]
"""Errors by partition, None for success. Partition -1 means a topic whose partitions are unknown."""


@click.command("delete-offsets", epilog=EXAMPLES)
@click.argument("name", required=False, metavar="[GROUP]", shell_complete=complete_groups)
@click.option("--group", metavar="ID", shell_complete=complete_groups, help="Kafka's spelling of GROUP.")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:0,1]",
    shell_complete=complete_topics,
    help="The topic whose offsets to delete; partitions after a colon. Repeatable.",
)
@timeout_option
@yes_option
@json_option
@cluster_options()
def delete_offsets(
    settings: ClientSettings,
    name: str | None,
    group: str | None,
    topics: tuple[str, ...],
    timeout_ms: int | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Delete a group's committed offsets of topics that it is not reading. Asks for confirmation on a terminal."""
    if (name is None) == (group is None) or not topics:
        raise click.UsageError("name one group and the topics, for example: ottla groups delete-offsets billing --topic orders")
    group_id = name or group or ""
    wanted = parse_topics(topics)
    confirm(f"Delete the offsets of group {group_id} for {', '.join(topics)}?", yes)
    results = with_cluster(with_timeout(settings, timeout_ms), lambda cluster: _delete(cluster, group_id, wanted))
    failed = any(error is not None for error in results.values())
    if as_json:
        print_json(
            [
                {"topic": each.topic, "partition": each.partition, **({} if error is None else {"error": explain(error)})}
                for each, error in results.items()
            ]
        )
        return 1 if failed else 0
    if not failed:
        say(f"Request succeeded for deleting offsets from group {group_id}.")
    rows = [
        (
            each.topic,
            "-" if each.partition < 0 else each.partition,
            "Successful" if error is None else f"Error: {explain(error)}",
        )
        for each, error in results.items()
    ]
    say()
    print_padded(("TOPIC", "PARTITION", "STATUS"), rows, (15, 10, 0))
    return 1 if failed else 0


async def _delete(cluster: Cluster, group_id: str, topics: dict[str, list[int] | None]) -> Results:
    whole = await describe_topics(cluster, [name for name, numbers in topics.items() if numbers is None])
    results: Results = {TopicPartition(str(name), -1): error for name, error in whole.errors.items()}
    wanted = [TopicPartition(name, number) for name, numbers in topics.items() for number in numbers or ()]
    wanted += [TopicPartition(topic.name, each.partition) for topic in whole.values_found.values() for each in topic.partitions]
    deleted = await delete_consumer_group_offsets(cluster, group_id, wanted)
    results |= {each: deleted.errors.get(each) for each in deleted}
    return dict(sorted(results.items()))
