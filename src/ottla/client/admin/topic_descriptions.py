"""Which topics there are, and what their partitions look like (Metadata, DescribeTopicPartitions)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.client.admin.acl_types import AclOperation, operations_of
from ottla.client.admin.checks import listed, number, topic_or_id
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster, topic_error
from ottla.errors import KafkaError, UnsupportedVersionError
from ottla.ids import Uuid, repr_with_ids, uuid_text
from ottla.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    TopicRequest,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


class TopicListing(NamedTuple):
    """A topic in `list_topics`."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: int
    """How many partitions it has."""

    def __repr__(self) -> str:
        return repr_with_ids(self, self._fields)


class PartitionDescription(NamedTuple):
    """A partition and the ids of its brokers. `leader` is None while there is none."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None = None
    """None where the broker does not tell: topics described by id, and brokers before 4.0."""
    last_known_eligible_leader_replicas: tuple[int, ...] | None = None


class TopicDescription(NamedTuple):
    """A topic and its partitions."""

    name: str
    id: Uuid
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None
    """What the principal may do with it; None if that was not asked for."""

    def __repr__(self) -> str:
        return repr_with_ids(self, self._fields)


async def list_topics(cluster: Cluster, *, include_internal: bool = False) -> dict[str, TopicListing]:
    """The topics of the cluster that the principal may see, by name."""
    response = await cluster.metadata(None)
    found = {
        topic.name: TopicListing(topic.name, topic.topic_id, topic.is_internal, len(topic.partitions))
        for topic in response.topics
        if topic.name is not None and not topic.error_code and (include_internal or not topic.is_internal)
    }
    return dict(sorted(found.items()))


def described_topics(topics: Mapping[str, MetadataResponseTopic]) -> dict[str, TopicDescription]:
    """What `Cluster.topics` has found, as descriptions. It needs one request for all topics, internal ones too."""
    described = {name: _described(topic) for name, topic in topics.items()}
    return {name: each for name, each in described.items() if isinstance(each, TopicDescription)}


async def describe_topics(
    cluster: Cluster,
    topics: Iterable[str | Uuid],
    *,
    include_authorized_operations: bool = False,
    partitions_per_request: int = 2000,
) -> Results[str | Uuid, TopicDescription]:
    """Describe topics by name or by id. Large topics come in several responses of at most `partitions_per_request`."""
    wanted = [topic_or_id(each, "topics") for each in dict.fromkeys(listed(topics, "topics"))]
    number(partitions_per_request, "partitions_per_request", 1)
    names = [each for each in wanted if isinstance(each, str)]
    ids = [each for each in wanted if isinstance(each, bytes)]
    found: dict[str | Uuid, TopicDescription | KafkaError] = {}
    if names:
        try:
            found |= await _by_cursor(cluster, sorted(names), partitions_per_request)
        except UnsupportedVersionError:  # brokers before 3.8
            found |= await _by_metadata(cluster, [MetadataRequestTopic(name=name) for name in names], False)
    if ids:
        asked = [MetadataRequestTopic(name=None, topic_id=Uuid(each)) for each in ids]
        found |= await _by_metadata(cluster, asked, include_authorized_operations, by_id=True)
    if not include_authorized_operations:
        found = {
            key: each._replace(authorized_operations=None) if isinstance(each, tuple) else each for key, each in found.items()
        }
    return results_for(wanted, found)


async def _by_cursor(
    cluster: Cluster, names: list[str], partitions_per_request: int
) -> dict[str | Uuid, TopicDescription | KafkaError]:
    found: dict[str | Uuid, TopicDescription | KafkaError] = {}
    cursor: DescribeTopicPartitionsRequestCursor | None = None
    while True:
        left = names if cursor is None else [name for name in names if name >= cursor.topic_name]
        response: DescribeTopicPartitionsResponse = await cluster.ask_any(
            DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in left],
                response_partition_limit=partitions_per_request,
                cursor=cursor,
            )
        )
        for topic in response.topics:
            if topic.name is not None:
                found[topic.name] = _joined(found.get(topic.name), topic)
        following = response.next_cursor
        if following is None:
            return found
        position = (following.topic_name, following.partition_index)
        if cursor is not None and position <= (cursor.topic_name, cursor.partition_index):
            return found  # a broker that does not move on must not keep us here
        cursor = DescribeTopicPartitionsRequestCursor(topic_name=position[0], partition_index=position[1])


def _joined(
    before: TopicDescription | KafkaError | None, topic: DescribeTopicPartitionsResponseTopic
) -> TopicDescription | KafkaError:
    if topic.error_code:
        return topic_error(topic.error_code, topic.name or "")
    partitions = [
        _partition(each)._replace(
            eligible_leader_replicas=None if each.eligible_leader_replicas is None else tuple(each.eligible_leader_replicas),
            last_known_eligible_leader_replicas=None if each.last_known_elr is None else tuple(each.last_known_elr),
        )
        for each in topic.partitions
    ]
    earlier = before.partitions if isinstance(before, TopicDescription) else ()
    joined = {each.partition: each for each in (*earlier, *partitions)}
    return TopicDescription(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        tuple(joined[index] for index in sorted(joined)),
        operations_of(topic.topic_authorized_operations),
    )


async def _by_metadata(
    cluster: Cluster, topics: list[MetadataRequestTopic], include_authorized_operations: bool, by_id: bool = False
) -> dict[str | Uuid, TopicDescription | KafkaError]:
    request = MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=include_authorized_operations,
    )
    response: MetadataResponse = await cluster.ask_any(request)
    return {topic.topic_id if by_id else topic.name or "": _described(topic) for topic in response.topics}


def _described(topic: MetadataResponseTopic) -> TopicDescription | KafkaError:
    if topic.error_code:
        return topic_error(topic.error_code, topic.name or uuid_text(topic.topic_id))
    partitions = [_partition(each) for each in sorted(topic.partitions, key=lambda each: each.partition_index)]
    operations = operations_of(topic.topic_authorized_operations)
    return TopicDescription(topic.name or "", topic.topic_id, topic.is_internal, tuple(partitions), operations)


def _partition(each: MetadataResponsePartition | DescribeTopicPartitionsResponsePartition) -> PartitionDescription:
    return PartitionDescription(
        each.partition_index,
        each.leader_id if each.leader_id >= 0 else None,
        each.leader_epoch,
        tuple(each.replica_nodes),
        tuple(each.isr_nodes),
        tuple(each.offline_replicas),
    )
