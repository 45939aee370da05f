"""What the cluster knows about the partitions of a plan: where they are, what is moving, how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ottla.cli.reassign.plan import Assignment, Plan
from ottla.client.admin.cluster_state import NodeDescription, describe_cluster
from ottla.client.admin.log_dirs import Replica, ReplicaLogDir, describe_replica_log_dirs
from ottla.client.admin.reassignments import PartitionReassignment, list_partition_reassignments
from ottla.client.admin.topic_descriptions import describe_topics
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

DONE: Final = "completed"
MOVING: Final = "in progress"
ELSEWHERE: Final = "elsewhere"
MISSING: Final = "missing"
"""The replica is in no log directory that works."""
ANSWER_S = 10.0


class PlanRefused(OttlaError):
    """A plan cannot be executed on this cluster."""


class PartitionProgress(NamedTuple):
    """How far a partition of a plan is."""

    state: str
    replicas: tuple[int, ...]
    """Where it is now; nothing if it does not exist."""
    wanted: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


class DirectoryProgress(NamedTuple):
    """How far the move of a replica to another log directory is."""

    state: str
    wanted: str
    path: str | None
    future_path: str | None


class Status(NamedTuple):
    """How far a plan is."""

    partitions: dict[TopicPartition, PartitionProgress]
    directories: dict[Replica, DirectoryProgress]
    is_cluster_moving: bool
    """Whether any partition of the cluster is being reassigned, of this plan or another."""
    down: frozenset[int] = frozenset()
    """The brokers that partitions of the plan move to, and that are down: these moves wait for them."""

    @property
    def is_done(self) -> bool:
        """Whether every partition and every directory is as the plan says."""
        return self.states <= {DONE}

    @property
    def states(self) -> set[str]:
        """The states of all partitions and directories of the plan."""
        return {each.state for each in self.partitions.values()} | {each.state for each in self.directories.values()}

    @property
    def is_moving(self) -> bool:
        """Whether something of the plan, or another reassignment, is under way."""
        return self.is_cluster_moving or any(each.state == MOVING for each in self.directories.values())


async def live_nodes(cluster: Cluster) -> dict[int, NodeDescription]:
    """The brokers that are up, by id."""
    return (await describe_cluster(cluster)).nodes


async def current_assignment(cluster: Cluster, topics: Iterable[str]) -> dict[TopicPartition, list[int]]:
    """The replicas of all partitions of topics."""
    described = (await describe_topics(cluster, sorted(set(topics)))).raise_first()
    return {
        TopicPartition(topic.name, each.partition): list(each.replicas)
        for topic in described.values()
        for each in topic.partitions
    }


async def current_of(cluster: Cluster, plan: Assignment) -> dict[TopicPartition, list[int]]:
    """The replicas that the partitions of a plan have now. All of them must exist."""
    known = await current_assignment(cluster, {each.topic for each in plan})
    for partition in plan:
        if partition not in known:
            raise PlanRefused(
                f"the plan names {partition}, which does not exist: {partition.topic} has "
                f"{sum(each.topic == partition.topic for each in known)} partitions"
            )
    return {partition: known[partition] for partition in plan}


async def places_of(cluster: Cluster, assignment: Assignment, live: Iterable[int]) -> dict[Replica, str]:
    """The log directories of replicas, as far as brokers tell: those that are down, or do not answer in time, are left out."""
    up = frozenset(live)
    wanted = [Replica(*each, broker) for each, replicas in assignment.items() for broker in replicas if broker in up]
    try:
        async with asyncio.timeout(ANSWER_S):
            found = (await describe_replica_log_dirs(cluster, wanted)).values_found
    except (KafkaError, TimeoutError):
        return {}
    return {replica: place.path for replica, place in found.items() if place.path is not None}


async def status_of(cluster: Cluster, plan: Plan) -> Status:
    """How far a plan is."""
    ongoing = await list_partition_reassignments(cluster)
    topics = await describe_topics(cluster, sorted({each.topic for each in plan.assignment}))
    known: dict[TopicPartition, tuple[int, ...]] = {}
    for error in topics.errors.values():
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise error
    for topic in topics.values_found.values():
        known |= {TopicPartition(topic.name, each.partition): each.replicas for each in topic.partitions}
    partitions = {
        partition: _progress(known.get(partition, ()), tuple(wanted), ongoing.get(partition))
        for partition, wanted in sorted(plan.assignment.items())
    }
    targets = {broker for each in partitions.values() for broker in each.adding}
    down = targets.difference(await live_nodes(cluster)) if targets else ()
    return Status(partitions, await directory_progress(cluster, plan.log_dirs), bool(ongoing), frozenset(down))


def _progress(replicas: tuple[int, ...], wanted: tuple[int, ...], ongoing: PartitionReassignment | None) -> PartitionProgress:
    if ongoing is not None:
        return PartitionProgress(MOVING, ongoing.replicas, wanted, ongoing.adding, ongoing.removing)
    return PartitionProgress(DONE if replicas == wanted else ELSEWHERE, replicas, wanted)


async def directory_progress(cluster: Cluster, wanted: Mapping[Replica, str]) -> dict[Replica, DirectoryProgress]:
    """How far the moves of replicas to log directories are."""
    found = (await describe_replica_log_dirs(cluster, wanted)).values_found if wanted else {}
    return {
        replica: _directory_progress(path, found.get(replica))
        for replica, path in sorted(wanted.items(), key=lambda each: (each[0].broker, each[0]))
    }


def _directory_progress(wanted: str, place: ReplicaLogDir | None) -> DirectoryProgress:
    if place is None or (place.path is None and place.future_path is None):
        return DirectoryProgress(MISSING, wanted, None, None)
    if place.future_path is not None:
        return DirectoryProgress(MOVING, wanted, place.path, place.future_path)
    return DirectoryProgress(DONE if place.path == wanted else ELSEWHERE, wanted, place.path, None)
