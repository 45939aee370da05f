"""Topics with partitions, settings and reassignments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.cli.topics.choosing import NoSuchTopic, choose
from ottla.cli.topics.diagnosis import Diagnosis, Surroundings, diagnose
from ottla.client.admin.configs import ConfigEntry, describe_configs
from ottla.client.admin.reassignments import PartitionReassignment, list_partition_reassignments
from ottla.client.admin.topic_descriptions import PartitionDescription, TopicDescription, describe_topics, list_topics
from ottla.client.cluster import Cluster, is_worth_retrying
from ottla.client.health import asked_broker, stale_note
from ottla.errors import KafkaError
from ottla.ids import TopicPartition, uuid_parse

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


class Found(NamedTuple):
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
) -> Found:
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
        return Found([])
    live_brokers = frozenset(cluster.brokers)
    topics = (await describe_topics(cluster, chosen, partitions_per_request=partitions_per_response)).raise_first()
    settings = (await describe_configs(cluster, [("topic", name) for name in chosen])).raise_first()
    seen_by = await asked_broker(cluster)
    moving = await _reassignments(cluster)
    views = [
        TopicView(topic, entries, live_brokers, topic.partitions, moving or {})
        for topic, entries in zip(topics.values(), settings.values(), strict=True)
    ]
    return Found(views, stale_note(seen_by) if moving is None else None)


async def _reassignments(cluster: Cluster) -> dict[TopicPartition, PartitionReassignment] | None:
    """What is being moved; None if no controller answers: brokers describe topics without one, as they knew them last."""
    try:
        async with asyncio.timeout(ANSWER_S):
            return await list_partition_reassignments(cluster)
    except TimeoutError:
        return None
    except KafkaError as error:
        return None if is_worth_retrying(error) else {}
