"""Requests about transactions: to coordinators for ids and states, to partition leaders for producers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.cli.common.cluster import Cluster, refusal
from ottla.cli.common.coordinators import CoordinatorKind, by_coordinator, each_broker
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition
from ottla.link import NoCommonVersion
from ottla.wire.apis import ApiKey
from ottla.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    ProducerState,
    TopicRequest,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_DURATION_SINCE_VERSION, _PATTERN_SINCE_VERSION = 1, 2
_PARTITIONS_PER_REQUEST = 500


class ListedTransaction(NamedTuple):
    """A transactional id as its coordinator lists it."""

    id: str
    coordinator_id: int
    producer_id: int
    state: str


class TransactionView(NamedTuple):
    """A transactional id and its transaction; the start is -1 where none is open."""

    id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


async def list_transactions(
    cluster: Cluster,
    *,
    states: Sequence[str] = (),
    producer_ids: Iterable[int] = (),
    duration_ms: int = -1,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """The transactional ids of all coordinators that match the filters."""
    version = _PATTERN_SINCE_VERSION if pattern is not None else _DURATION_SINCE_VERSION if duration_ms >= 0 else 0
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=sorted(producer_ids),
        duration_filter=max(-1, duration_ms),
        transactional_id_pattern=pattern,
    )

    async def ask(broker_id: int) -> list[ListedTransaction]:
        link = await cluster.link_to(broker_id)
        if not link.versions.has(ApiKey.LIST_TRANSACTIONS, version):
            flag = "--transactional-id-pattern" if pattern is not None else "--duration-filter" if version else ""
            text = f"{link.address} is too old to list transactions{f' with {flag}: leave it out' if flag else ''}"
            raise NoCommonVersion(link.address, text)
        response: ListTransactionsResponse = await link.request(request)
        if response.error_code:
            raise refusal(response.error_code, f"broker {broker_id} does not list its transactions")
        return [
            ListedTransaction(each.transactional_id, broker_id, each.producer_id, each.transaction_state)
            for each in response.transaction_states
        ]

    found = await each_broker(cluster, ask)
    return sorted(each for listed in found.values() for each in listed)


async def describe_transactions(cluster: Cluster, ids: Iterable[str]) -> dict[str, TransactionView | KafkaError]:
    """Each of the transactional ids, or the error that its coordinator answered."""

    async def ask(broker_id: int, wanted: list[str]) -> dict[str, TransactionView | KafkaError]:
        request = DescribeTransactionsRequest(transactional_ids=wanted)
        response: DescribeTransactionsResponse = await (await cluster.link_to(broker_id)).request(request)
        found: dict[str, TransactionView | KafkaError] = {}
        for each in response.transaction_states:
            if each.error_code:
                found[each.transactional_id] = id_refusal(each.transactional_id, each.error_code)
                continue
            found[each.transactional_id] = TransactionView(
                each.transactional_id,
                broker_id,
                each.producer_id,
                each.producer_epoch,
                each.transaction_state,
                each.transaction_timeout_ms,
                each.transaction_start_time_ms,
                tuple(sorted(TopicPartition(topic.topic, number) for topic in each.topics for number in topic.partitions)),
            )
        return found

    return await by_coordinator(cluster, CoordinatorKind.TRANSACTION, ids, ask)


def id_refusal(transactional_id: str, code: int) -> KafkaError:
    """The exception for an error code about a transactional id."""
    if code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return refusal(code, f"transactional id {transactional_id}")
    hint = "`ottla transactions list` shows all of them"
    return KafkaError(code, f"there is no transactional id {transactional_id} ({error_name(code)}): {hint}")


Producers = dict[TopicPartition, list[ProducerState] | KafkaError]


async def find_producers(cluster: Cluster, partitions: Sequence[TopicPartition], broker_id: int | None = None) -> Producers:
    """The active producers of each partition, asked from its leader, or from its replica on broker `broker_id`."""

    async def ask(asked_id: int, wanted: list[TopicPartition]) -> Producers:
        topics: dict[str, TopicRequest] = {}
        for each in wanted:
            topics.setdefault(each.topic, TopicRequest(name=each.topic)).partition_indexes.append(each.partition)
        request = DescribeProducersRequest(topics=list(topics.values()))
        response: DescribeProducersResponse = await (await cluster.link_to(asked_id)).request(request)
        return {
            TopicPartition(topic.name, each.partition_index): (
                refusal(
                    each.error_code,
                    f"broker {asked_id} does not show the producers of partition {topic.name}-{each.partition_index}",
                    each.error_message,
                )
                if each.error_code
                else sorted(each.active_producers, key=lambda state: state.producer_id)
            )
            for topic in response.topics
            for each in topic.partitions
        }

    found: Producers = {}
    for start in range(0, len(partitions), _PARTITIONS_PER_REQUEST):
        batch = list(partitions[start : start + _PARTITIONS_PER_REQUEST])
        found |= await cluster.by_leader(batch, ask) if broker_id is None else await ask(broker_id, batch)
    return found
