"""Replicas and leaders of partitions: reassign, list what is under way, elect (…PartitionReassignments, ElectLeaders)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.client.admin.checks import mapping, member, numbers, partition, partitions
from ottla.client.admin.requests import ask_controller_whole, raise_refused, refused_or, to_controller
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, TopicPartitions
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)


class ElectionType(IntEnum):
    """PREFERRED makes the first replica leader; UNCLEAN makes a replica leader that may lack acknowledged records."""

    PREFERRED = 0
    UNCLEAN = 1


class PartitionReassignment(NamedTuple):
    """A reassignment that is under way: all replicas now, those being added and those being removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def alter_partition_reassignments(
    cluster: Cluster,
    reassignments: Mapping[TopicPartition | tuple[str, int], Sequence[int] | None],
    *,
    allow_replication_factor_change: bool = True,
) -> Results[TopicPartition, None]:
    """Move partitions to other brokers: `{("orders", 0): [2, 3]}`, preferred leader first. None cancels a reassignment."""
    mapping(reassignments, "reassignments")
    wanted = {
        partition(key, "reassignments"): None if replicas is None else numbers(replicas, f"reassignments[{key!r}]")
        for key, replicas in reassignments.items()
    }

    async def ask(items: list[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        topics: dict[str, ReassignableTopic] = {}
        for each in items:
            entry = ReassignablePartition(partition_index=each.partition, replicas=wanted[each])
            topics.setdefault(each.topic, ReassignableTopic(name=each.topic)).partitions.append(entry)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=cluster.settings.request_timeout_ms,
            allow_replication_factor_change=allow_replication_factor_change,
            topics=list(topics.values()),
        )
        response: AlterPartitionReassignmentsResponse = await cluster.ask_controller(request)
        raise_refused(response.error_code, "no partition was reassigned", response.error_message)
        found: dict[TopicPartition, KafkaError | None] = {}
        for topic in response.responses:
            for result in topic.partitions:
                key = TopicPartition(topic.name, result.partition_index)
                about = f"partition {key} was not reassigned"
                found[key] = refused_or(result.error_code, about, result.error_message, None)
        return found

    return results_for(wanted, await to_controller(cluster, wanted, ask) if wanted else {})


async def list_partition_reassignments(
    cluster: Cluster, wanted_partitions: Iterable[TopicPartition | tuple[str, int]] | None = None
) -> dict[TopicPartition, PartitionReassignment]:
    """The reassignments that are under way, of these partitions (None: of all)."""
    asked = None
    if wanted_partitions is not None:
        topics: dict[str, ListPartitionReassignmentsTopics] = {}
        for topic, index in partitions(wanted_partitions, "wanted_partitions"):
            topics.setdefault(topic, ListPartitionReassignmentsTopics(name=topic)).partition_indexes.append(index)
        asked = list(topics.values())
    request = ListPartitionReassignmentsRequest(timeout_ms=cluster.settings.request_timeout_ms, topics=asked)
    response: ListPartitionReassignmentsResponse = await ask_controller_whole(
        cluster, request, "the reassignments cannot be listed"
    )
    return {
        TopicPartition(found.name, each.partition_index): PartitionReassignment(
            tuple(each.replicas), tuple(each.adding_replicas), tuple(each.removing_replicas)
        )
        for found in response.topics
        for each in found.partitions
    }


async def elect_leaders(
    cluster: Cluster,
    election_type: ElectionType | str,
    wanted_partitions: Iterable[TopicPartition | tuple[str, int]] | None = None,
) -> Results[TopicPartition, None]:
    """Elect leaders of partitions (None: of all that need it): `"preferred"` or `"unclean"`.

    A partition that has the right leader already fails with `ElectionNotNeededError`.
    """
    kind = member(ElectionType, election_type, "election_type")
    wanted = None if wanted_partitions is None else partitions(wanted_partitions, "wanted_partitions")
    if wanted == []:
        return Results({})
    topics: dict[str, TopicPartitions] = {}
    for topic, index in wanted or ():
        topics.setdefault(topic, TopicPartitions(topic=topic)).partitions.append(index)
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None if wanted is None else list(topics.values()),
        timeout_ms=cluster.settings.request_timeout_ms,
    )
    response: ElectLeadersResponse = await ask_controller_whole(cluster, request, "no leader was elected")
    found: dict[TopicPartition, KafkaError | None] = {}
    for result in response.replica_election_results:
        for each in result.partition_result:
            key = TopicPartition(result.topic, each.partition_id)
            about = f"no leader of partition {key} was elected"
            found[key] = refused_or(each.error_code, about, each.error_message, None)
    return results_for(sorted(found) if wanted is None else wanted, found)
