"""`ottla groups delete-offsets`."""

from __future__ import annotations

import click

from ottla.cli.common.cluster import Cluster, refusal, topic_refusal
from ottla.cli.common.completion import complete_topics
from ottla.cli.common.coordinators import CoordinatorKind, by_coordinator
from ottla.cli.common.options import cluster_options, json_option, yes_option
from ottla.cli.common.output import confirm, print_json, print_padded, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.groups.choosing import complete_groups, parse_topics, timeout_option, with_timeout
from ottla.cli.groups.views import no_such_group
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

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
                {"topic": each.topic, "partition": each.partition, **({} if error is None else {"error": str(error)})}
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
            "Successful" if error is None else f"Error: {error}",
        )
        for each, error in results.items()
    ]
    say()
    print_padded(("TOPIC", "PARTITION", "STATUS"), rows, (15, 10, 0))
    return 1 if failed else 0


async def _delete(cluster: Cluster, group_id: str, topics: dict[str, list[int] | None]) -> Results:
    results: Results = {}
    wanted: list[TopicPartition] = []
    for name, numbers in topics.items():
        try:
            known = (
                numbers if numbers is not None else [each.partition_index for each in (await cluster.topic(name)).partitions]
            )
        except KafkaError as error:
            results[TopicPartition(name, -1)] = error
        else:
            wanted += [TopicPartition(name, number) for number in known]

    async def ask(broker_id: int, ids: list[str]) -> dict[str, Results | KafkaError]:
        asked: dict[str, OffsetDeleteRequestTopic] = {}
        for each in wanted:
            partition = OffsetDeleteRequestPartition(partition_index=each.partition)
            asked.setdefault(each.topic, OffsetDeleteRequestTopic(name=each.topic)).partitions.append(partition)
        request = OffsetDeleteRequest(group_id=group_id, topics=list(asked.values()))
        response: OffsetDeleteResponse = await (await cluster.link_to(broker_id)).request(request)
        if response.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return {group_id: no_such_group(group_id)}
        if response.error_code:
            return {group_id: refusal(response.error_code, f"the offsets of group {group_id} were not deleted")}
        return {
            group_id: {
                TopicPartition(topic.name, each.partition_index): _error(
                    group_id, topic.name, each.partition_index, each.error_code
                )
                for topic in response.topics
                for each in topic.partitions
            }
        }

    if wanted:
        outcome = (await by_coordinator(cluster, CoordinatorKind.GROUP, [group_id], ask))[group_id]
        if isinstance(outcome, KafkaError):
            raise outcome
        results |= outcome
    return dict(sorted(results.items()))


def _error(group_id: str, topic: str, partition: int, code: int) -> KafkaError | None:
    if not code:
        return None
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return topic_refusal(code, topic, partition)
    text = None
    if code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        text = f"group {group_id} is reading {topic}; stop its members first"
    return refusal(code, f"partition {topic}-{partition}", text)
