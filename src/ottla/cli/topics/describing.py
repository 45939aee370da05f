"""Topics with partitions and settings, from DescribeTopicPartitions, or from Metadata if the brokers are older."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.cli.common.cluster import Cluster, topic_refusal
from ottla.cli.common.configs import ConfigSource, Resource, describe_configs
from ottla.cli.topics.choosing import NoSuchTopic, choose
from ottla.ids import Uuid, uuid_parse
from ottla.metadata.image.image import ResourceType
from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from ottla.wire.messages.metadata import MetadataResponseTopic

PARTITIONS_PER_RESPONSE = 2000
MIN_ISR = "min.insync.replicas"


@dataclass(slots=True)
class PartitionView:
    """One partition, as the cluster describes it."""

    index: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    elr: list[int] | None = None
    last_known_elr: list[int] | None = None
    has_live_leader: bool = True


@dataclass(slots=True)
class TopicView:
    """One topic. `partitions` may be filtered for output; `partition_count` is their number before that."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: list[PartitionView] = field(default_factory=list)
    configs: dict[str, str | None] = field(default_factory=dict)
    """Settings whose value differs from Kafka's default."""
    min_isr: int = 1
    partition_count: int = 0
    replication_factor: int = 0


async def describe_topics(
    cluster: Cluster,
    names: Sequence[str],
    pattern: str | None,
    topic_id: str | None,
    missing_is_fine: bool,
    partitions_per_response: int,
) -> list[TopicView]:
    """The chosen topics with partitions and settings."""
    known = await cluster.topics()
    if topic_id is not None:
        wanted = uuid_parse(topic_id)
        chosen = [name for name, topic in known.items() if topic.topic_id == wanted]
        if not chosen and not missing_is_fine:
            raise NoSuchTopic(f"no topic has the id {topic_id}")
    else:
        chosen = choose(known, names, pattern, missing_is_fine)
    if not chosen:
        return []
    if (await cluster.any_link()).versions.has(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        topics = await _from_describe(cluster, chosen, partitions_per_response)
    else:
        topics = [_from_metadata(known[name]) for name in chosen]
    for topic in topics:
        topic.partition_count = len(topic.partitions)
        topic.replication_factor = len(topic.partitions[0].replicas) if topic.partitions else 0
        for each in topic.partitions:
            each.has_live_leader = each.leader in cluster.brokers
    await _add_configs(cluster, topics)
    return topics


async def _from_describe(cluster: Cluster, names: Sequence[str], limit: int) -> list[TopicView]:
    """Ask page by page. A page may end in the middle of a topic; the next one continues there."""
    found: dict[str, TopicView] = {}
    request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit)
    while True:
        response: DescribeTopicPartitionsResponse = await cluster.ask_any(request)
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code:
                raise topic_refusal(topic.error_code, name)
            view = found.setdefault(name, TopicView(name, topic.topic_id, topic.is_internal))
            view.partitions += [
                PartitionView(
                    each.partition_index,
                    each.leader_id,
                    each.leader_epoch,
                    each.replica_nodes,
                    each.isr_nodes,
                    each.eligible_leader_replicas,
                    each.last_known_elr,
                )
                for each in topic.partitions
            ]
        if response.next_cursor is None:
            return [found[name] for name in names if name in found]
        request.cursor = DescribeTopicPartitionsRequestCursor(
            topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
        )


def _from_metadata(topic: MetadataResponseTopic) -> TopicView:
    view = TopicView(topic.name or "", topic.topic_id, topic.is_internal)
    view.partitions = [
        PartitionView(each.partition_index, each.leader_id, each.leader_epoch, each.replica_nodes, each.isr_nodes)
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    ]
    return view


async def _add_configs(cluster: Cluster, topics: Sequence[TopicView]) -> None:
    described = await describe_configs(cluster, [Resource(ResourceType.TOPIC, topic.name) for topic in topics])
    for topic, configs in zip(topics, described.values(), strict=True):
        topic.configs = {each.name: each.value for each in configs if each.config_source != ConfigSource.DEFAULT_CONFIG}
        topic.min_isr = next((int(each.value or 1) for each in configs if each.name == MIN_ISR), 1)
