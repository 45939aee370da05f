"""Transactions as their coordinators see them: list, describe, end by force (ListTransactions, DescribeTransactions, …)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.client.admin.checks import INT64_MAX, listed, number, text, texts
from ottla.client.admin.requests import raise_refused, refuse_older, refused
from ottla.client.admin.results import Results, results_for
from ottla.client.cluster import Cluster
from ottla.client_core.coordinators import CoordinatorKind
from ottla.errors import ArgumentError, KafkaError, exception_of
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

_DURATION_SINCE_VERSION, _PATTERN_SINCE_VERSION = 1, 2


class TransactionListing(NamedTuple):
    """A transactional id in `list_transactions`."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """A transactional id and its transaction."""

    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start: int | None
    """When the open transaction began, in ms since 1970; None if none is open."""
    partitions: tuple[TopicPartition, ...]


class FencedProducer(NamedTuple):
    """The producer id and epoch that a transactional id has after its producer was fenced."""

    producer_id: int
    producer_epoch: int


async def list_transactions(
    cluster: Cluster,
    *,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    longer_than_ms: int = -1,
    id_pattern: str | None = None,
) -> list[TransactionListing]:
    """The transactional ids of all coordinators: limited to states, producer ids, open time, and a regular expression.

    The states are Kafka's: `Empty`, `Ongoing`, `PrepareCommit`, `PrepareAbort`, `CompleteCommit`, `CompleteAbort`,
    `PrepareEpochFence`, `Dead`.
    """
    version = _PATTERN_SINCE_VERSION if id_pattern is not None else _DURATION_SINCE_VERSION if longer_than_ms >= 0 else 0
    wanted = "transactions" + ("", " by how long they are open", " by a pattern")[version]
    request = ListTransactionsRequest(
        state_filters=texts(states, "states"),
        producer_id_filters=[number(each, "producer_ids", 0, INT64_MAX) for each in listed(producer_ids, "producer_ids")],
        duration_filter=number(longer_than_ms, "longer_than_ms", -1, INT64_MAX),
        transactional_id_pattern=id_pattern,
    )

    async def ask(broker_id: int) -> list[TransactionListing]:
        await refuse_older(cluster, broker_id, ApiKey.LIST_TRANSACTIONS, version, wanted)
        response: ListTransactionsResponse = await cluster.once(broker_id, request)
        raise_refused(response.error_code, f"broker {broker_id} cannot list its transactions")
        if response.unknown_state_filters:
            raise ArgumentError(f"states: the broker does not know {', '.join(response.unknown_state_filters)}")
        return [
            TransactionListing(each.transactional_id, each.producer_id, each.transaction_state, broker_id)
            for each in response.transaction_states
        ]

    return sorted(each for found in (await cluster.each_broker(ask)).values() for each in found)


async def describe_transactions(cluster: Cluster, transactional_ids: Iterable[str]) -> Results[str, TransactionDescription]:
    """The state of each transactional id and of its open transaction."""
    wanted = texts(transactional_ids, "transactional_ids")

    async def ask(broker_id: int, ids: list[str]) -> dict[str, TransactionDescription | KafkaError]:
        request = DescribeTransactionsRequest(transactional_ids=ids)
        response: DescribeTransactionsResponse = await cluster.once(broker_id, request)
        found: dict[str, TransactionDescription | KafkaError] = {}
        for each in response.transaction_states:
            if each.error_code:
                found[each.transactional_id] = _id_refused(each.error_code, each.transactional_id)
                continue
            found[each.transactional_id] = TransactionDescription(
                broker_id,
                each.transaction_state,
                each.producer_id,
                each.producer_epoch,
                each.transaction_timeout_ms,
                each.transaction_start_time_ms if each.transaction_start_time_ms >= 0 else None,
                tuple(sorted(TopicPartition(topic.topic, one) for topic in each.topics for one in topic.partitions)),
            )
        return found

    return results_for(wanted, await cluster.by_coordinator(CoordinatorKind.TRANSACTION, wanted, ask))


def _id_refused(code: int, transactional_id: str) -> KafkaError:
    if code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return exception_of(code, f"there is no transactional id {transactional_id} ({error_name(code)})")
    return refused(code, f"transactional id {transactional_id}")


async def fence_producers(cluster: Cluster, transactional_ids: Iterable[str]) -> Results[str, FencedProducer]:
    """Fence the producers of transactional ids: their open transactions are aborted, and they cannot write any more.

    An id that does not exist is created by this.
    """
    wanted = texts(transactional_ids, "transactional_ids")

    async def ask(broker_id: int, ids: list[str]) -> dict[str, FencedProducer | KafkaError]:
        found: dict[str, FencedProducer | KafkaError] = {}
        for each in ids:
            # The timeout is stored with the transactional id, until its next producer sets its own.
            timeout_ms = cluster.settings.request_timeout_ms
            response: InitProducerIdResponse = await cluster.once(
                broker_id, InitProducerIdRequest(transactional_id=each, transaction_timeout_ms=timeout_ms)
            )
            found[each] = FencedProducer(response.producer_id, response.producer_epoch)
            if response.error_code:
                found[each] = refused(response.error_code, f"the producer of {each} was not fenced")
        return found

    return results_for(wanted, await cluster.by_coordinator(CoordinatorKind.TRANSACTION, wanted, ask))


async def force_terminate_transaction(cluster: Cluster, transactional_id: str) -> None:
    """Abort the open transaction of a transactional id and fence its producer."""
    (await fence_producers(cluster, [text(transactional_id, "transactional_id")])).raise_first()
