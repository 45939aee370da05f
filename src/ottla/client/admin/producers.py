"""Transactions as partitions see them: active producers, and an abort marker for a transaction that hangs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from ottla.client.admin.checks import INT64_MAX, number, partition, partitions
from ottla.client.admin.requests import refused, refused_or
from ottla.client.admin.results import Results, missing, results_for
from ottla.client.cluster import Cluster
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from ottla.wire.messages.describe_producers import ProducerState as WireProducerState
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

PARTITIONS_PER_REQUEST = 500
"""A partition may remember thousands of producers: all partitions of a cluster would be too many for one response."""


class ProducerState(NamedTuple):
    """An idempotent or transactional producer that a partition remembers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None
    """Where its open transaction begins; None if none is open."""


async def describe_producers(
    cluster: Cluster, wanted_partitions: Iterable[TopicPartition | tuple[str, int]], *, broker_id: int | None = None
) -> Results[TopicPartition, list[ProducerState]]:
    """The active producers of partitions, as their leaders see them, or one broker that has a replica."""
    wanted = partitions(wanted_partitions, "wanted_partitions")

    async def ask(asked_id: int, items: list[TopicPartition]) -> dict[TopicPartition, list[ProducerState] | KafkaError]:
        topics: dict[str, TopicRequest] = {}
        for topic, index in items:
            topics.setdefault(topic, TopicRequest(name=topic)).partition_indexes.append(index)
        request = DescribeProducersRequest(topics=list(topics.values()))
        response: DescribeProducersResponse = await cluster.once(asked_id, request)
        found: dict[TopicPartition, list[ProducerState] | KafkaError] = {}
        for answered in response.topics:
            for each in answered.partitions:
                key = TopicPartition(answered.name, each.partition_index)
                found[key] = [_state(one) for one in sorted(each.active_producers, key=lambda one: one.producer_id)]
                if each.error_code:
                    found[key] = refused(each.error_code, f"the producers of partition {key}", each.error_message)
        return found

    if broker_id is not None:
        await cluster.require_node(number(broker_id, "broker_id"))
    found: dict[TopicPartition, list[ProducerState] | KafkaError] = {}
    for start in range(0, len(wanted), PARTITIONS_PER_REQUEST):
        page = wanted[start : start + PARTITIONS_PER_REQUEST]
        if broker_id is None:
            found |= await cluster.by_leader(page, ask)
        else:
            found |= await cluster.retrying(partial(ask, broker_id, page))
    return results_for(wanted, found)


def _state(state: WireProducerState) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        state.last_sequence,
        state.last_timestamp,
        state.coordinator_epoch if state.coordinator_epoch >= 0 else None,
        state.current_txn_start_offset if state.current_txn_start_offset >= 0 else None,
    )


async def abort_transaction(
    cluster: Cluster,
    wanted_partition: TopicPartition | tuple[str, int],
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
) -> None:
    """Write an abort marker to one partition, past the coordinator: for transactions that no coordinator will end.

    `describe_producers` tells the three numbers. A producer without a coordinator epoch takes 0.
    """
    key = partition(wanted_partition, "wanted_partition")
    marker = WritableTxnMarker(
        producer_id=number(producer_id, "producer_id", 0, INT64_MAX),
        producer_epoch=number(producer_epoch, "producer_epoch", 0, 2**15 - 1),
        coordinator_epoch=number(coordinator_epoch, "coordinator_epoch"),
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=key.topic, partition_indexes=[key.partition])],
    )

    async def ask(broker_id: int, items: list[TopicPartition]) -> dict[TopicPartition, KafkaError | None]:
        response: WriteTxnMarkersResponse = await cluster.once(broker_id, WriteTxnMarkersRequest(markers=[marker]))
        codes = [each.error_code for one in response.markers for topic in one.topics for each in topic.partitions]
        about = f"the transaction of producer {producer_id} in partition {key} was not aborted"
        return {key: refused_or(codes[0], about, None, None) if codes else missing(key)}

    outcome = (await cluster.by_leader([key], ask))[key]
    if isinstance(outcome, KafkaError):
        raise outcome
