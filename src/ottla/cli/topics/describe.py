"""`ottla topics describe`: partitions, settings and reassignments of topics. `diagnosis.py` says what is wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import click

from ottla.cli.common.connection import with_cluster
from ottla.cli.common.options import cluster_options, json_option, plain_option, wide_option
from ottla.cli.common.output import is_for_people, print_json, print_table, print_title, say, warn
from ottla.cli.common.settings import ClientSettings
from ottla.cli.topics.selection import NoSuchTopic, choose, topic_arguments
from ottla.client.admin.configs import ConfigEntry, describe_configs
from ottla.client.admin.reassignments import PartitionReassignment, list_partition_reassignments
from ottla.client.admin.topic_descriptions import PartitionDescription, TopicDescription, describe_topics, list_topics
from ottla.client.cluster import Cluster, is_worth_retrying
from ottla.client.diagnosis import OK, Diagnosis, Surroundings, diagnose
from ottla.client.health import asked_broker, stale_note
from ottla.errors import KafkaError
from ottla.errors.texts import listed
from ottla.ids import TopicPartition, uuid_parse, uuid_text

PARTITIONS_PER_RESPONSE = 2000


MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
ANSWER_S = 5.0


@dataclass(slots=True)
class TopicView:
    """One topic with its settings. `partitions` may be filtered for output."""

    topic: TopicDescription
    settings: Mapping[str, ConfigEntry]
    live_brokers: frozenset[int]
    partitions: Sequence[PartitionDescription]
    reassignments: Mapping[TopicPartition, PartitionReassignment]

    @property
    def configs(self) -> dict[str, str | None]:
        """Settings whose value differs from Kafka's default."""
        return {name: entry.value for name, entry in self.settings.items() if not entry.is_default}

    @property
    def min_isr(self) -> int:
        return int(self.settings[MIN_ISR].value or 1) if MIN_ISR in self.settings else 1

    @property
    def replication_factor(self) -> int:
        return self.replicas_due(self.topic.partitions[0]) if self.topic.partitions else 0

    def reassignment(self, partition: PartitionDescription) -> PartitionReassignment | None:
        return self.reassignments.get(TopicPartition(self.topic.name, partition.partition))

    def replicas_due(self, partition: PartitionDescription) -> int:
        """How many replicas should be in sync: those that a reassignment is adding are not counted."""
        moving = self.reassignment(partition)
        return len(partition.replicas) - (0 if moving is None else len(set(partition.replicas) & set(moving.adding)))

    def diagnosis(self, partition: PartitionDescription) -> Diagnosis:
        """What is wrong with a partition."""
        unclean = self.settings.get(UNCLEAN)
        around = Surroundings(
            self.live_brokers, self.min_isr, unclean is not None and unclean.value == "true", self.reassignment(partition)
        )
        return diagnose(TopicPartition(self.topic.name, partition.partition), partition, around)


class ChosenTopics(NamedTuple):
    """The chosen topics."""

    topics: list[TopicView]
    note: str | None = None
    """What to say of all of them if no controller answers."""


async def find_topics(
    cluster: Cluster,
    names: Sequence[str],
    pattern: str | None,
    topic_id: str | None,
    missing_is_fine: bool,
    partitions_per_response: int,
) -> ChosenTopics:
    """The chosen topics with partitions and settings."""
    known = await list_topics(cluster, include_internal=True)
    if topic_id is not None:
        wanted = uuid_parse(topic_id)
        chosen = [name for name, topic in known.items() if topic.id == wanted]
        if not chosen and not missing_is_fine:
            raise NoSuchTopic(f"no topic has the id {topic_id}")
    else:
        chosen = choose(known, names, pattern, missing_is_fine)
    if not chosen:
        return ChosenTopics([])
    live_brokers = frozenset(cluster.brokers)
    topics = (await describe_topics(cluster, chosen, partitions_per_request=partitions_per_response)).raise_first()
    settings = (await describe_configs(cluster, [("topic", name) for name in chosen])).raise_first()
    seen_by = await asked_broker(cluster)
    moving = await _reassignments(cluster)
    views = [
        TopicView(topic, entries, live_brokers, topic.partitions, moving or {})
        for topic, entries in zip(topics.values(), settings.values(), strict=True)
    ]
    return ChosenTopics(views, stale_note(seen_by) if moving is None else None)


async def _reassignments(cluster: Cluster) -> dict[TopicPartition, PartitionReassignment] | None:
    """What is being moved; None if no controller answers: brokers describe topics without one, as they knew them last."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await list_partition_reassignments(cluster)
    except TimeoutError:
        return None
    except KafkaError as error:
        return None if is_worth_retrying(error) else {}


EXAMPLES = """\b
Examples:
  ottla topics describe orders
  ottla topics describe                                  every topic
  ottla topics describe --unavailable-partitions         what has no leader right now
  ottla topics describe --check                          why a partition is not healthy; then the exit code is 1
  ottla topics describe orders --json
"""

Filter = Callable[[TopicView, PartitionDescription], bool]

FILTERS: dict[str, tuple[str, Filter]] = {
    "under-replicated-partitions": ("whose replicas are not all in sync.", lambda t, p: len(p.isr) < t.replicas_due(p)),
    "unavailable-partitions": ("that have no live leader.", lambda t, p: p.leader not in t.live_brokers),
    "under-min-isr-partitions": (
        "with fewer replicas in sync than min.insync.replicas.",
        lambda t, p: p.leader is None or len(p.isr) < t.min_isr,
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
    "--check",
    is_flag=True,
    help="Say what is wrong and end with exit code 1 if a partition has no leader, or replicas that are not in sync; or "
    "if no controller answers.",
)
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
    check: bool,
    partition_size_limit_per_response: int,
    as_json: bool,
    plain: bool,
    **filters: bool,
) -> int:
    """Show partitions, replicas and settings of topics.

    NAMES are topics; the default is all. Configs are the settings that differ from Kafka's defaults. Elr (eligible leader
    replicas) are out of sync, but still hold every committed record; LastKnownElr are the last replicas that did. The state of
    a partition is offline (no leader), under-min-isr (acks=all is refused), at-min-isr (one more failure, and it is refused),
    under-replicated, reassigning, or ok. The reason and what to do next: on a terminal, in JSON and with --check.
    """
    chosen_filters = [FILTERS[name.replace("_", "-")][1] for name, is_on in filters.items() if is_on]
    topics, note = with_cluster(
        settings,
        lambda cluster: find_topics(cluster, names, pattern, topic_id, if_exists, partition_size_limit_per_response),
    )
    if note is not None:
        warn(note)
    if exclude_internal:
        topics = [view for view in topics if not view.topic.is_internal]
    if topics_with_overrides:
        topics = [view for view in topics if view.configs]
    if chosen_filters:
        for view in topics:
            view.partitions = [each for each in view.partitions if any(keep(view, each) for keep in chosen_filters)]
        topics = [view for view in topics if view.partitions]
    if as_json:
        print_json([_as_json(view) for view in topics])
    elif is_for_people(as_json, plain):
        _print_tables(topics, with_partitions=not topics_with_overrides)
    else:
        _print_lines(topics, with_head=not chosen_filters, with_partitions=not topics_with_overrides)
    wrong = _wrong(topics)
    if check and not as_json and not is_for_people(as_json, plain):
        for line in wrong:
            warn(line)
    return 1 if check and (wrong or note is not None) else 0


def _wrong(topics: Sequence[TopicView]) -> list[str]:
    """What is wrong and what to do, in sentences. Partitions of a topic with the same trouble share one."""
    found: dict[tuple[str, Diagnosis], list[int]] = {}
    for view in topics:
        for each in view.partitions:
            diagnosis = view.diagnosis(each)
            if diagnosis.state != OK:
                # Remedies that name the partition count as the same: the first one's is shown.
                key = diagnosis._replace(remedy=diagnosis.remedy.replace(f":{each.partition} ", ":PARTITION "))
                found.setdefault((view.topic.name, key), []).append(each.partition)
    lines = []
    for (name, diagnosis), numbers in found.items():
        who = listed([f"{name}-{number}" for number in numbers])
        remedy = diagnosis.remedy.replace(":PARTITION ", f":{numbers[0]} " if len(numbers) == 1 else " ")
        lines.append(f"{who} {'is' if len(numbers) == 1 else 'are'} {diagnosis.state}: {diagnosis.why}. To do: {remedy}")
    return lines


def _joined(ids: Sequence[int] | None) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))


def _leader(partition: PartitionDescription) -> int | str:
    return "none" if partition.leader is None else partition.leader


def _print_lines(topics: Sequence[TopicView], with_head: bool, with_partitions: bool) -> None:
    """Kafka's own lines."""
    for view in topics:
        if with_head:
            configs = ",".join(f"{name}={value}" for name, value in view.configs.items())
            say(
                f"Topic: {view.topic.name}",
                f"TopicId: {uuid_text(view.topic.id)}",
                f"PartitionCount: {len(view.topic.partitions)}",
                f"ReplicationFactor: {view.replication_factor}",
                f"Configs: {configs}",
            )
        for each in view.partitions if with_partitions else ():
            say(
                "",
                f"Topic: {view.topic.name}",
                f"Partition: {each.partition}",
                f"Leader: {_leader(each)}",
                f"Replicas: {_joined(each.replicas)}",
                f"Isr: {_joined(each.isr)}",
                *_moving(view, each),
                f"Elr: {_joined(each.eligible_leader_replicas)}",
                f"LastKnownElr: {_joined(each.last_known_eligible_leader_replicas)}",
            )


def _moving(view: TopicView, partition: PartitionDescription) -> list[str]:
    """Kafka's fields about a reassignment."""
    moving = view.reassignment(partition)
    if moving is None:
        return []
    return [f"Adding Replicas: {_joined(moving.adding)}", f"Removing Replicas: {_joined(moving.removing)}"]


def _print_tables(topics: Sequence[TopicView], with_partitions: bool) -> None:
    for view in topics:
        configs = [f"{name}={value}" for name, value in view.configs.items()]
        title = (
            f"{view.topic.name}  (id {uuid_text(view.topic.id)}, partitions: {len(view.topic.partitions)}, "
            f"replication factor: {view.replication_factor})"
        )
        rows = [
            (
                each.partition,
                _leader(each),
                *map(
                    _joined, (each.replicas, each.isr, each.eligible_leader_replicas, each.last_known_eligible_leader_replicas)
                ),
                view.diagnosis(each).state,
            )
            for each in view.partitions
        ]
        if with_partitions:
            headings = ("#Partition", "#Leader", "=Replicas", "=ISR", "=ELR", "=Last known ELR", "State")
            print_table(title, headings, rows, configs)
        else:
            print_title(title, *configs)
    if with_partitions and (wrong := _wrong(topics)):
        print_title("What is wrong", *wrong)


def _as_json(view: TopicView) -> dict[str, object]:
    return {
        "topic": view.topic.name,
        "topicId": uuid_text(view.topic.id),
        "partitionCount": len(view.topic.partitions),
        "replicationFactor": view.replication_factor,
        "isInternal": view.topic.is_internal,
        "configs": view.configs,
        "partitions": [
            {
                "partition": each.partition,
                "leader": each.leader,
                "leaderEpoch": each.leader_epoch,
                "replicas": each.replicas,
                "isr": each.isr,
                "elr": each.eligible_leader_replicas,
                "lastKnownElr": each.last_known_eligible_leader_replicas,
                "adding": [] if (moving := view.reassignment(each)) is None else moving.adding,
                "removing": [] if moving is None else moving.removing,
                **view.diagnosis(each)._asdict(),
            }
            for each in view.partitions
        ],
    }
