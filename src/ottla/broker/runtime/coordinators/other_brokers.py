"""What this broker asks other brokers for transactions: to write markers, and to verify partitions with a coordinator there.

One connection per broker and API: a marker must not wait behind a verification. A connection is opened with its first request,
and again when it has ended or its broker has moved. One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any

from ottla.broker.background import watched
from ottla.broker.runtime.coordinators.verification import ASKED_AGAIN_MAX, Begun
from ottla.coordinator.contract import Producer
from ottla.env.uninterrupted import uninterrupted
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.link import LinkError, LinkOptions
from ottla.wire.base import Message
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

if TYPE_CHECKING:
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.node_links import NodeLinks
    from ottla.broker.runtime.coordinators.transaction_markers import Marker, Outcome
    from ottla.broker.settings import BrokerSettings
    from ottla.link import Link
    from ottla.metadata.image.cluster import BrokerRegistration, Endpoint

logger = logging.getLogger("ottla.coordinator")


class OtherBrokers:
    """The other brokers of the cluster, by their ids, on the listener for brokers."""

    def __init__(self, to_brokers: NodeLinks, node_id: int, settings: BrokerSettings, metadata: MetadataCache) -> None:
        self._to_brokers = to_brokers
        self._node_id = node_id
        self._settings = settings
        self._metadata = metadata
        self._links: dict[tuple[int, int], tuple[Uuid, Link]] = {}
        """Broker and API → the broker's incarnation, which the link leads to, and the link."""
        self._opening: dict[tuple[int, int], asyncio.Task[Link]] = {}
        """Attempts to connect. All requests that need the link wait for the same one, and fail with it."""
        self._tasks: set[asyncio.Task[None]] = set()

    # -- markers

    def write_markers(
        self, broker_id: int, marker: Marker, names: list[TopicPartition], done: Callable[[Outcome], None]
    ) -> None:
        """Have a broker write `marker` to partitions that it leads; `done` is called with the error code of each."""
        self._spawn(self._write_markers(broker_id, marker, names, done))

    async def _write_markers(
        self, broker_id: int, marker: Marker, names: list[TopicPartition], done: Callable[[Outcome], None]
    ) -> None:
        asked = WritableTxnMarker(
            producer_id=marker.producer.id,
            producer_epoch=marker.producer.epoch,
            transaction_result=marker.is_commit,
            topics=[WritableTxnMarkerTopic(name=name, partition_indexes=each) for name, each in _by_topic(names).items()],
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
        )
        outcome: Outcome = dict.fromkeys(names, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        response = await self._ask(broker_id, WriteTxnMarkersRequest(markers=[asked]))
        for result in response.markers if response is not None else ():
            for topic in result.topics:
                for each in topic.partitions:
                    outcome[TopicPartition(topic.name, each.partition_index)] = each.error_code
        done(outcome)

    # -- verification

    def verify(
        self,
        broker_id: int,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        is_add: bool,
        deliver: Callable[[dict[TopicPartition, int]], None],
        begun: Begun,
    ) -> None:
        """Have the coordinator on a broker verify partitions, or add them; `deliver` gets the error code of each."""
        self._spawn(self._verify(broker_id, transactional_id, producer, partitions, is_add, deliver, begun))

    async def _verify(
        self,
        broker_id: int,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        is_add: bool,
        deliver: Callable[[dict[TopicPartition, int]], None],
        begun: Begun,
    ) -> None:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=not is_add,
            topics=[AddPartitionsToTxnTopic(name=name, partitions=each) for name, each in _by_topic(partitions).items()],
        )
        request, config = AddPartitionsToTxnRequest(transactions=[transaction]), self._settings.current
        backoff_ms = config.add_partitions_to_txn_retry_backoff_ms
        waitable_ms = min(config.add_partitions_to_txn_retry_backoff_max_ms, config.request_timeout_ms) if is_add else 0
        asked_again = 0
        while True:
            codes = _verified(await self._ask(broker_id, request), partitions)
            if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values() and waitable_ms > 0:
                waitable_ms -= backoff_ms  # cheaper than letting the client send its batch again
                await asyncio.sleep(backoff_ms / 1000)
            elif asked_again < ASKED_AGAIN_MAX and begun.is_dropped():
                asked_again += 1
            else:
                break
            try:
                begun.again()
            except KafkaError as refused:
                codes = dict.fromkeys(partitions, refused.code)
                break
        deliver(codes)

    # -- connections

    def brokers_changed(self, broker_ids: Set[int]) -> None:
        """Registrations have changed. A process that lost its power answers no more, and no packet says so."""
        for (broker_id, _), (incarnation_id, link) in self._links.items():
            broker = self._metadata.image.cluster.brokers.get(broker_id)
            if broker_id in broker_ids and broker is not None and broker.incarnation_id != incarnation_id:
                link.close()  # requests under way fail now, not after request.timeout.ms

    async def _ask(self, broker_id: int, request: Message) -> Any:
        """The broker's response; None if it cannot be reached."""
        key = (broker_id, request.KEY)
        try:
            link = await self._link(key)
            return None if link is None else await link.request(request, self._settings.current.request_timeout_ms)
        except LinkError:
            return None
        except Exception:  # a bug of ours: as without an answer, the transaction must be able to go on
            logger.exception("a request about transactions to node %d failed", broker_id)
            return None

    async def _link(self, key: tuple[int, int]) -> Link | None:
        config = self._settings.current
        broker = self._metadata.image.cluster.brokers.get(key[0])
        endpoint = None if broker is None else broker.endpoints.get(config.inter_broker_listener_name)
        if broker is None or endpoint is None:
            return None
        known = self._links.get(key)
        if known is not None:
            link = known[1]
            if (link.host, link.port) == (endpoint.host, endpoint.port) and not link.is_over:
                return link
            link.close()
        opening = self._opening.get(key)
        if opening is None:
            opening = self._opening[key] = asyncio.get_running_loop().create_task(self._open(key, broker, endpoint))
            opening.add_done_callback(_retrieve)
        return await uninterrupted(opening)

    async def _open(self, key: tuple[int, int], broker: BrokerRegistration, endpoint: Endpoint) -> Link:
        try:
            options = LinkOptions(client_id=f"broker-{self._node_id}-transactions")
            link = await self._to_brokers.connect(endpoint.host, endpoint.port, options)
            self._links[key] = (broker.incarnation_id, link)
            return link
        finally:
            del self._opening[key]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = watched("a request about transactions to another broker", work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Give up what is under way, and close all connections."""
        tasks = [*self._tasks, *self._opening.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _, link in self._links.values():
            link.close()


def _retrieve(opening: asyncio.Task[Link]) -> None:
    """Mark a failure as retrieved: the requests that waited for the link may have been given up."""
    if not opening.cancelled():
        opening.exception()


def _by_topic(names: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name in names:
        found.setdefault(name.topic, []).append(name.partition)
    return found


def _verified(response: Any, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """Partition → error code. PRODUCER_FENCED becomes INVALID_PRODUCER_EPOCH, which producers know from appends."""
    missing = ErrorCode.COORDINATOR_NOT_AVAILABLE if response is None else response.error_code
    codes: dict[TopicPartition, int] = dict.fromkeys(partitions, missing)
    for result in response.results_by_transaction if response is not None else ():
        for topic in result.topic_results:
            for each in topic.results_by_partition:
                code = each.partition_error_code
                if code == ErrorCode.PRODUCER_FENCED:
                    code = ErrorCode.INVALID_PRODUCER_EPOCH
                codes[TopicPartition(topic.name, each.partition_index)] = code
    return codes
