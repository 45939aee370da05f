"""`ottla topics describe`: filters and prints. `describing.py` asks the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, print_title, say
from ottla.cli.common.running import with_cluster
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.choosing import topic_arguments
from ottla.cli.topics.describing import PARTITIONS_PER_RESPONSE, PartitionView, TopicView, describe_topics
from ottla.ids import uuid_text

EXAMPLES = """\b
Examples:
  ottla topics describe orders
  ottla topics describe                                  every topic
  ottla topics describe --unavailable-partitions         what has no leader right now
  ottla topics describe orders --json
"""

Filter = Callable[[TopicView, PartitionView], bool]

FILTERS: dict[str, tuple[str, Filter]] = {
    "under-replicated-partitions": ("whose replicas are not all in sync.", lambda _, p: len(p.isr) < len(p.replicas)),
    "unavailable-partitions": ("that have no live leader.", lambda _, p: not p.has_live_leader),
    "under-min-isr-partitions": (
        "with fewer replicas in sync than min.insync.replicas.",
        lambda t, p: p.leader < 0 or len(p.isr) < t.min_isr,
    ),
    "at-min-isr-partitions": ("with exactly min.insync.replicas replicas in sync.", lambda t, p: len(p.isr) == t.min_isr),
}


@click.command("describe", epilog=EXAMPLES)
@topic_arguments
@click.option("--topic-id", metavar="ID", help="The topic with this id, instead of names.")
@click.option("--exclude-internal", is_flag=True, help="Leave out internal topics.")
@click.option("--if-exists", is_flag=True, help="Do nothing if there is no such topic.")
@click.option("--topics-with-overrides", is_flag=True, help="Only topics with settings of their own; leave partitions out.")
@click.option(
    "--under-replicated-partitions", is_flag=True, help=f"Only partitions {FILTERS['under-replicated-partitions'][0]}"
)
@click.option("--unavailable-partitions", is_flag=True, help=f"Only partitions {FILTERS['unavailable-partitions'][0]}")
@click.option("--under-min-isr-partitions", is_flag=True, help=f"Only partitions {FILTERS['under-min-isr-partitions'][0]}")
@click.option("--at-min-isr-partitions", is_flag=True, help=f"Only partitions {FILTERS['at-min-isr-partitions'][0]}")
@click.option(
    "--partition-size-limit-per-response",
    type=click.IntRange(1),
    default=PARTITIONS_PER_RESPONSE,
    show_default=True,
    help="How many partitions to ask for at a time.",
)
@json_option
@plain_option
@wide_option
@cluster_options()
def describe(
    settings: ClientSettings,
    names: tuple[str, ...],
    pattern: str | None,
    topic_id: str | None,
    exclude_internal: bool,
    if_exists: bool,
    topics_with_overrides: bool,
    partition_size_limit_per_response: int,
    as_json: bool,
    plain: bool,
    **filters: bool,
) -> None:
    """Show partitions, replicas and settings of topics.

    NAMES are topics; the default is all. Configs are the settings that differ from Kafka's defaults. Elr (eligible leader
    replicas) are out of sync, but still hold every committed record; LastKnownElr are the last replicas that did.
    """
    chosen_filters = [FILTERS[name.replace("_", "-")][1] for name, is_on in filters.items() if is_on]
    topics = with_cluster(
        settings,
        lambda cluster: describe_topics(cluster, names, pattern, topic_id, if_exists, partition_size_limit_per_response),
    )
    if exclude_internal:
        topics = [topic for topic in topics if not topic.is_internal]
    if topics_with_overrides:
        topics = [topic for topic in topics if topic.configs]
    if chosen_filters:
        for topic in topics:
            topic.partitions = [each for each in topic.partitions if any(keep(topic, each) for keep in chosen_filters)]
        topics = [topic for topic in topics if topic.partitions]
    if as_json:
        print_json([_as_json(topic) for topic in topics])
    elif is_for_people(as_json, plain):
        _print_tables(topics, with_partitions=not topics_with_overrides)
    else:
        _print_lines(topics, with_head=not chosen_filters, with_partitions=not topics_with_overrides)


def _joined(ids: Sequence[int] | None) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))


def _print_lines(topics: Sequence[TopicView], with_head: bool, with_partitions: bool) -> None:
    """Kafka's own lines."""
    for topic in topics:
        if with_head:
            configs = ",".join(f"{name}={value}" for name, value in topic.configs.items())
            say(
                f"Topic: {topic.name}",
                f"TopicId: {uuid_text(topic.id)}",
                f"PartitionCount: {topic.partition_count}",
                f"ReplicationFactor: {topic.replication_factor}",
                f"Configs: {configs}",
            )
        for each in topic.partitions if with_partitions else ():
            say(
                "",
                f"Topic: {topic.name}",
                f"Partition: {each.index}",
                f"Leader: {each.leader if each.leader >= 0 else 'none'}",
                f"Replicas: {_joined(each.replicas)}",
                f"Isr: {_joined(each.isr)}",
                f"Elr: {_joined(each.elr)}",
                f"LastKnownElr: {_joined(each.last_known_elr)}",
            )


def _print_tables(topics: Sequence[TopicView], with_partitions: bool) -> None:
    for topic in topics:
        configs = [f"{name}={value}" for name, value in topic.configs.items()]
        title = (
            f"{topic.name}  (id {uuid_text(topic.id)}, partitions: {topic.partition_count}, "
            f"replication factor: {topic.replication_factor})"
        )
        rows = [
            (
                each.index,
                each.leader if each.leader >= 0 else "none",
                *map(_joined, (each.replicas, each.isr, each.elr, each.last_known_elr)),
            )
            for each in topic.partitions
        ]
        if with_partitions:
            print_table(title, ("#Partition", "#Leader", "=Replicas", "=ISR", "=ELR", "=Last known ELR"), rows, configs)
        else:
            print_title(title, *configs)


def _as_json(topic: TopicView) -> dict[str, object]:
    return {
        "topic": topic.name,
        "topicId": uuid_text(topic.id),
        "partitionCount": topic.partition_count,
        "replicationFactor": topic.replication_factor,
        "isInternal": topic.is_internal,
        "configs": topic.configs,
        "partitions": [
            {
                "partition": each.index,
                "leader": each.leader if each.leader >= 0 else None,
                "leaderEpoch": each.leader_epoch,
                "replicas": each.replicas,
                "isr": each.isr,
                "elr": each.elr,
                "lastKnownElr": each.last_known_elr,
            }
            for each in topic.partitions
        ],
    }
