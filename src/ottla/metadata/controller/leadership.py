"""Computes new leaders and ISRs of all affected partitions when a broker or one of its directories joins or leaves. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, Uuid
from ottla.metadata.controller.partition_change import Election, PartitionChange
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.controller.topic_settings import effective_min_isr, unclean_election_allowed
from ottla.metadata.features import DIRECTORIES_FROM
from ottla.metadata.image.topics import NO_LEADER, PartitionState, Topic
from ottla.wire.messages.metadata_records import PartitionChangeRecord

NO_BROKER = -1


class PartitionOf(NamedTuple):
    """A partition with its topic."""

    topic: Topic
    number: int
    state: PartitionState


def partitions_where(state: ControllerState, condition: Callable[[PartitionState], bool]) -> Iterator[PartitionOf]:
    """All partitions that meet `condition`, in the order of the image."""
    for topic in state.image.topics.by_id.values():
        for index, partition in topic.partitions.items():
            if condition(partition):
                yield PartitionOf(topic, index, partition)


def find_partition(state: ControllerState, topic_name: str, number: int) -> PartitionOf:
    """The partition by topic name and number; UNKNOWN_TOPIC_OR_PARTITION if there is none."""
    topic = state.image.topics.by_name.get(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic_name}")
    partition = topic.partitions.get(number)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic_name} has {counted(len(topic.partitions), 'partition')}, and no number {number}",
        )
    return PartitionOf(topic, number, partition)


def partitions_in_sync_on(state: ControllerState, broker_id: int) -> Iterator[PartitionOf]:
    return partitions_where(state, lambda partition: broker_id in partition.isr)


def leads_any(state: ControllerState, broker_id: int) -> bool:
    return next(partitions_where(state, lambda partition: partition.leader == broker_id), None) is not None


def is_active(state: ControllerState, broker_id: int) -> bool:
    """Whether the broker is registered and neither fenced nor shutting down."""
    broker = state.image.cluster.brokers.get(broker_id)
    return broker is not None and broker.is_active


def default_directory(state: ControllerState, broker_id: int) -> Uuid:
    """The directory of a new replica on a broker: the only one it has, or `DIRECTORY_UNASSIGNED` until it chooses."""
    broker = state.image.cluster.brokers.get(broker_id)
    if state.image.metadata_version < DIRECTORIES_FROM:
        return DIRECTORY_MIGRATING
    if broker is None:
        return DIRECTORY_UNASSIGNED
    if not broker.directories:
        return DIRECTORY_MIGRATING
    return broker.directories[0] if len(broker.directories) == 1 else DIRECTORY_UNASSIGNED


def change_of(
    state: ControllerState,
    which: PartitionOf,
    is_candidate: Callable[[int], bool] | None = None,
    min_isr: int | None = None,
) -> PartitionChange:
    """A change of one partition, for the caller to fill in. `is_candidate` replaces `is_active` as the test of brokers."""

    def is_acceptable_leader(broker_id: int) -> bool:
        broker = state.image.cluster.brokers.get(broker_id)
        if broker is None or not (is_active(state, broker_id) if is_candidate is None else is_candidate(broker_id)):
            return False
        directory = change.directories.get(broker_id)  # of the change: it may report the directory of a replica
        return directory is not None and broker.has_online_directory(directory)

    change = PartitionChange(
        partition=which.state,
        is_acceptable_leader=is_acceptable_leader,
        default_directory=lambda broker_id: default_directory(state, broker_id),
        metadata_version=state.image.metadata_version,
        min_isr=effective_min_isr(state, which.topic) if min_isr is None else min_isr,
        elr_enabled=state.elr_enabled,
    )
    return change


def leadership_changes(
    state: ControllerState,
    partitions: Iterable[PartitionOf],
    *,
    leaving: int = NO_BROKER,
    joining: int = NO_BROKER,
    unclean: int = NO_BROKER,
) -> list[PartitionChangeRecord]:
    """The changes of `partitions` when a broker leaves, joins, or registers again after an unclean shutdown.

    The image does not have that event yet: `joining` counts as active although it is fenced there, the others as inactive.
    """

    def is_candidate(broker_id: int) -> bool:
        return broker_id not in (leaving, unclean) and (broker_id == joining or is_active(state, broker_id))

    changes: list[PartitionChangeRecord] = []
    topic, min_isr, election = None, 1, Election.ONLINE
    for which in partitions:
        if which.topic is not topic:  # once per topic: the look-up of settings costs more than the rest of this loop
            topic, min_isr = which.topic, effective_min_isr(state, which.topic)
            election = allowed_election(state, topic)
        change = change_of(state, which, is_candidate, min_isr)
        change.election = election
        if unclean != NO_BROKER:
            change.unclean_shutdown_replicas = (unclean,)
        change.isr = [replica for replica in which.state.isr if replica not in (leaving, unclean)]
        if (record := change.build(which.topic.id, which.number)) is not None:
            changes.append(record)
    return changes


def allowed_election(state: ControllerState, topic: Topic) -> Election:
    """The election that the controller holds by itself when a replica of `topic` comes or goes."""
    return Election.UNCLEAN if unclean_election_allowed(state, topic) else Election.ONLINE


def without_leader(partition: PartitionState) -> bool:
    return partition.leader == NO_LEADER
