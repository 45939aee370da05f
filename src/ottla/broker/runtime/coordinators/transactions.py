"""The transaction coordinator of this node: hosts the shards of __transaction_state and gives them settings and producer ids.

Also verifies that a partition belongs to a transaction, before the transaction's first batch is appended to it (`verify`).
One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.node_links import NodeLinks
from ottla.broker.runtime.coordinators.hosted_shard import HostedShard, PendingReply
from ottla.broker.runtime.coordinators.other_brokers import OtherBrokers
from ottla.broker.runtime.coordinators.runtime import CoordinatorRuntime
from ottla.broker.runtime.coordinators.transaction_endings import Endings
from ottla.broker.runtime.coordinators.transaction_markers import MarkerWriter
from ottla.broker.runtime.coordinators.verification import Begun, Verification
from ottla.coordinator.contract import Effects, Instant, Producer, Reply
from ottla.coordinator.id_limit import IdLimit
from ottla.coordinator.placement import partition_for
from ottla.coordinator.transactions.shard import TransactionShard
from ottla.coordinator.transactions.table import TransactionSettings
from ottla.env.repeated_lines import RepeatedLines
from ottla.env.uninterrupted import uninterrupted
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TRANSACTIONS_TOPIC, TopicPartition
from ottla.metadata.image.topics import NO_LEADER
from ottla.wire.log_records import InternalLog

if TYPE_CHECKING:
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.runtime.coordinators.groups import GroupRuntime
    from ottla.broker.runtime.producer_ids import ProducerIds
    from ottla.broker.settings import BrokerSettings
    from ottla.env import World
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage

logger = logging.getLogger("ottla.coordinator")

IMPLICIT_ADD_VERSION = 2
"""The transaction version of producers whose first batch adds its partition."""
_FEATURE = "transaction.version"


class NoProducerId(KafkaError):
    """Producer ids have to be allocated first: try again, or wait with `TransactionRuntime.wait_for_producer_id`."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "producer ids are being fetched: ask again")


class TransactionRuntime(CoordinatorRuntime[TransactionShard]):
    """The transactional ids whose coordinator this node is. `groups` returns this node's group coordinator."""

    def __init__(
        self,
        world: World,
        settings: BrokerSettings,
        partitions: Partitions,
        metadata: MetadataCache,
        producer_ids: ProducerIds,
        groups: Callable[[], GroupRuntime],
        complaints: RepeatedLines,
    ) -> None:
        super().__init__(
            TRANSACTIONS_TOPIC,
            InternalLog.TRANSACTIONS,
            partitions,
            metadata,
            world.clock,
            settings.current.request_timeout_ms,
            self._new_shard,
        )
        self.read_bytes = settings.current.transaction_state_log_load_buffer_size
        self._broker_settings = settings
        self._producer_ids = producer_ids
        self._spare_ids: list[int] = []
        self._fetching_id: asyncio.Task[None] | None = None
        self._settings = transaction_settings(settings, metadata.image)
        self.markers = MarkerWriter(partitions, settings, world.clock, groups)
        """Writes markers to this node's partitions, also for WriteTxnMarkers."""
        self._node_id = partitions.node_id
        self._others = OtherBrokers(NodeLinks.to_brokers(world, settings), partitions.node_id, settings, metadata)
        self._endings = Endings(partitions.node_id, metadata, self.markers, self._others.write_markers)
        self._limit = IdLimit(
            "ottla.max.transactional.ids",
            settings.current.ottla_max_transactional_ids,
            lambda: sum(len(hosted.shard.table.by_id) for hosted in self.active.values()),
            refused=lambda text: complaints.log(logging.WARNING, "too many transactional ids", "%s", text),
        )
        self.follow()

    def _new_shard(self, partition: Partition) -> TransactionShard:
        shard = TransactionShard(self._settings, self._new_producer_id)
        shard.table.limit = self._limit
        return shard

    def bring_up_to_date(self, shard: TransactionShard) -> None:
        shard.follow(self._settings)

    def carry_out(self, hosted: HostedShard[TransactionShard], orders: list[Any]) -> None:
        """Write the markers of transactions whose end is in the log."""
        for order in orders:
            self._endings.begin(hosted, order)

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata has changed; partitions and settings have been updated already."""
        self._settings = transaction_settings(self._broker_settings, image)
        if delta.changed_brokers:
            self._others.brokers_changed(delta.changed_brokers)
        for hosted in self.active.values():
            hosted.shard.follow(self._settings)
        self.follow()
        self._endings.retry_now()

    async def stop(self) -> None:
        self._endings.stop()
        if self._fetching_id is not None:
            self._fetching_id.cancel()
        await self._others.stop()
        await super().stop()

    # -- producer ids

    def _new_producer_id(self) -> int:
        producer_id = self._spare_ids.pop() if self._spare_ids else self._producer_ids.take()
        if producer_id is None:
            self._fetch_id()
            raise NoProducerId
        return producer_id

    def _fetch_id(self) -> asyncio.Task[None]:
        if self._fetching_id is None:
            self._fetching_id = asyncio.get_running_loop().create_task(self._wait_and_keep_id())
            self._fetching_id.add_done_callback(self._id_fetched)
        return self._fetching_id

    async def _wait_and_keep_id(self) -> None:
        self._spare_ids.append(await self._producer_ids.wait_and_take())

    def _id_fetched(self, task: asyncio.Task[None]) -> None:
        self._fetching_id = None
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.info("no producer ids could be allocated: %s", failure)

    async def wait_for_producer_id(self) -> None:
        """Wait until a producer id is ready. Raises a `KafkaError` if the controller allocates none now."""
        await uninterrupted(self._fetch_id())  # others may wait for it too

    # -- verification

    async def verify(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        is_add: bool,
        begun: Begun,
    ) -> dict[TopicPartition, int]:
        """Verify that the producer's open transaction has these partitions; with `is_add`, add them to it.

        Returns partition → error code. PRODUCER_FENCED becomes INVALID_PRODUCER_EPOCH, which producers know from appends.
        TRANSACTION_ABORTABLE (without `is_add`) means that the partition was not added; for clients of older versions it has to
        be replaced by INVALID_TXN_STATE. CONCURRENT_TRANSACTIONS and the codes for an unavailable coordinator have to become
        codes at which the client tries again.
        """
        answered: asyncio.Future[dict[TopicPartition, int]] = asyncio.get_running_loop().create_future()

        def deliver(codes: dict[TopicPartition, int]) -> None:
            if not answered.done():
                answered.set_result(codes)

        self.begin_verification(transactional_id, producer, partitions, is_add, deliver, begun)
        return await answered

    def begin_verification(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[TopicPartition],
        is_add: bool,
        deliver: Callable[[dict[TopicPartition, int]], None],
        begun: Begun,
    ) -> None:
        """Like `verify`, but calls `deliver` with the error codes, now or later, instead of awaiting them.

        `begun` begins again before the coordinator is asked again.
        """
        coordinator = self._coordinator_of(transactional_id)
        if coordinator != self._node_id:
            self._others.verify(coordinator, transactional_id, producer, partitions, is_add, deliver, begun)
            return

        def ask(is_first: bool) -> PendingReply:
            if not is_first:
                begun.again()
            return self.ask(transactional_id, decide, may_write=is_add)

        def decide(shard: TransactionShard, reply: Reply, now: Instant) -> Effects:
            if is_add:
                codes = dict.fromkeys(partitions, int(ErrorCode.NONE))
                return shard.add_partitions(transactional_id, producer, partitions, IMPLICIT_ADD_VERSION, reply, codes, now)
            return Effects.answer(reply, shard.verify(transactional_id, producer, partitions))

        config = self._broker_settings.current
        Verification(
            ask,
            partitions,
            deliver,
            begun.is_dropped,
            config.add_partitions_to_txn_retry_backoff_ms if is_add else 0,
            min(config.add_partitions_to_txn_retry_backoff_max_ms, config.request_timeout_ms) if is_add else 0,
        ).begin()

    def _coordinator_of(self, transactional_id: str) -> int:
        """The broker that leads the partition of `transactional_id`; this one if none does, so that it refuses."""
        topic = self._metadata.topic(self.topic)
        if topic is None:
            return self._node_id
        leader = topic.partitions[partition_for(transactional_id, len(topic.partitions))].leader
        return self._node_id if leader == NO_LEADER else leader


def transaction_settings(settings: BrokerSettings, image: MetadataImage) -> TransactionSettings:
    """The settings for transactions, from the broker's settings and the cluster's features."""
    config = settings.current
    taken = {name: getattr(config, name) for name in TransactionSettings._fields if hasattr(config, name)}
    taken["transaction_max_timeout_ms"] = config.log.transaction_max_timeout_ms
    taken["transaction_version"] = image.features.get(_FEATURE, 0)
    return TransactionSettings(**taken)
