"""Transactions that no coordinator will end, and how transactions are ended by force.

A hanging transaction is open in a partition for longer than transactions may last, and its coordinator does not know of it:
consumers with read_committed cannot read past it until it is aborted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.admin.producers import ProducerState, abort_transaction, describe_producers
from ottla.client.admin.topic_descriptions import describe_topics, list_topics
from ottla.client.admin.transactions import describe_transactions, force_terminate_transaction, list_transactions
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError, OttlaError, TransactionalIdNotFoundError
from ottla.ids import TopicPartition


class OpenTransaction(NamedTuple):
    """An open transaction in a partition."""

    partition: TopicPartition
    producer: ProducerState


class Hanging(NamedTuple):
    """The transactions that hang, and the partitions that could not be looked at."""

    found: list[OpenTransaction]
    errors: dict[TopicPartition, KafkaError]


async def find_hanging_transactions(
    cluster: Cluster,
    topic: str | None = None,
    partition: int | None = None,
    broker_id: int | None = None,
    *,
    timeout_ms: int,
    now_ms: int,
) -> Hanging:
    """Of all partitions, of a topic or of one; as the leaders see them, or a broker. None has written for `timeout_ms`."""
    partitions = await _partitions(cluster, topic, partition, broker_id)
    described = await describe_producers(cluster, partitions, broker_id=broker_id)
    overdue = [
        OpenTransaction(each, producer)
        for each, producers in described.values_found.items()
        for producer in producers
        if producer.transaction_start_offset is not None and now_ms - producer.last_timestamp > timeout_ms
    ]
    return Hanging(await _unknown_to_coordinators(cluster, overdue), described.errors)


async def _partitions(
    cluster: Cluster, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    names = [topic] if topic is not None else list(await list_topics(cluster, include_internal=True))
    topics = await describe_topics(cluster, names)
    if topics.errors and topic is not None:  # of all topics, one may be deleted between listing and describing
        topics.raise_first()
    return sorted(
        TopicPartition(each.name, one.partition)
        for each in topics.values_found.values()
        for one in each.partitions
        if (broker_id is None and one.leader is not None) or broker_id in one.replicas
    )


async def _unknown_to_coordinators(cluster: Cluster, overdue: Sequence[OpenTransaction]) -> list[OpenTransaction]:
    """Those that no coordinator will end: none knows the producer, or the partition is not in its transaction."""
    if not overdue:
        return []
    ids = {each.producer.producer_id for each in overdue}
    listed = {each.transactional_id: each.producer_id for each in await list_transactions(cluster, producer_ids=ids)}
    described = await describe_transactions(cluster, listed)
    for error in described.errors.values():
        if not isinstance(error, TransactionalIdNotFoundError):
            raise error
    expected = {(listed[name], each) for name, view in described.values_found.items() for each in view.partitions}
    return [each for each in overdue if (each.producer.producer_id, each.partition) not in expected]


async def abort_at(cluster: Cluster, partition: TopicPartition, start_offset: int) -> None:
    """Abort the open transaction that begins at an offset of a partition."""
    for each in (await describe_producers(cluster, [partition]))[partition]:
        if each.transaction_start_offset == start_offset:
            await abort_of(cluster, partition, each.producer_id, each.producer_epoch, each.coordinator_epoch)
            return
    raise OttlaError(
        f"no open transaction begins at offset {start_offset} of partition {partition}: "
        f"`ottla transactions describe-producers {partition.topic}:{partition.partition}` shows the open ones"
    )


async def abort_of(
    cluster: Cluster, partition: TopicPartition, producer_id: int, producer_epoch: int, coordinator_epoch: int | None
) -> None:
    """Abort the open transaction of a producer in a partition."""
    # -1 or None: the producer's first transaction hangs, so it has no coordinator epoch yet. 0 is accepted then.
    last_epoch = max(0, coordinator_epoch or 0)
    await abort_transaction(
        cluster, partition, producer_id=producer_id, producer_epoch=producer_epoch, coordinator_epoch=last_epoch
    )


async def terminate(cluster: Cluster, transactional_id: str) -> None:
    """Abort the open transaction of a transactional id that exists, and fence its producer."""
    # Forced termination would create an unknown id. Check first, so that a mistyped id is an error.
    (await describe_transactions(cluster, [transactional_id])).raise_first()
    await force_terminate_transaction(cluster, transactional_id)
