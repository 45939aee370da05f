"""The table of all partitions this node holds: lookup, metadata changes, failed log directories.

Owns the table, and the reasons why partitions are offline. `following.py` applies the metadata to the table, `upkeep_loop.py`
does the work in the background, `purgatory/wakeups.py` tries parked fetches again.

One event loop. Lookups are plain calls; `apply` is awaited, one call at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.partitions.cold_reads import ColdReads
from ottla.broker.partitions.following import follow, make_waiting
from ottla.broker.partitions.in_sync import NO_BROKER_EPOCH
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.upkeep_loop import UpkeepLoop
from ottla.broker.purgatory.wakeups import Wakeups
from ottla.env import World
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.log.directories.creation import NewPartition
from ottla.log.directories.log_directories import DirectoryLoss, LogDirectories
from ottla.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from ottla.broker.settings import BrokerSettings
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage

logger = logging.getLogger("ottla.partitions")


class Partitions:
    """The partitions of one node."""

    def __init__(
        self, node_id: int, world: World, settings: BrokerSettings, directories: LogDirectories, metadata: MetadataCache
    ) -> None:
        self.node_id = node_id
        self.settings = settings
        self.directories = directories
        self.on_must_stop: Callable[[str], None] | None = None
        """Called once, with the reason, when so many disks have failed that the node has to stop."""
        self.on_broken: Callable[[BaseException], None] | None = None
        """Called with an invariant that broke in background work: the node has to stop."""
        self.on_directory_lost: Callable[[DirectoryLoss], None] | None = None
        """Called with every directory that has failed, to report it to the controller."""
        self.on_isr_change: Callable[[Partition], None] | None = None
        """Called with every partition whose ISR has to be changed, to ask the controller."""
        self.truncations: dict[TopicPartition, asyncio.Future[None]] = {}
        """Followers' logs that are being truncated → the end of it. The metadata is applied to them afterwards."""
        self.by_name: dict[str, dict[int, Partition]] = {}
        """Topic name → index → partition. Only partitions that are online; no empty inner dicts."""
        self.by_id: dict[Uuid, dict[int, Partition]] = {}
        """Topic id → index → partition, the same partitions as in `by_name`."""
        self.offline: dict[TopicPartition, str] = {}
        """Partition that belongs here but is offline → reason."""
        self.waiting_for_room: dict[TopicPartition, NewPartition] = {}
        """Offline partitions that are created as soon as there are free file descriptors."""
        self.deleted: dict[TopicPartition, None] = {}
        """Partitions that the newest metadata has deleted, until requests see that metadata."""
        self.has_followed = False
        """Whether `apply` has run once; before, it is unknown which logs belong here."""
        self.incarnation_id: Uuid | None = None
        """The id of this process in its registration, from when it registers on."""
        self.may_lead = False
        """Whether the metadata has the registration of this process. What it says before is about an earlier one."""
        self.cold_reads = ColdReads(world.disk)
        self._metadata = metadata
        self._following = asyncio.Lock()
        self._wakeups = Wakeups()
        self._upkeep = UpkeepLoop(self, world.clock)

    def __len__(self) -> int:
        return sum(map(len, self.by_name.values()))

    def __iter__(self) -> Iterator[Partition]:
        return (partition for partitions in self.by_name.values() for partition in partitions.values())

    # Lookup

    def find(self, topic: str, index: int) -> Partition | None:
        """The partition, if this node holds it and it is online. This node need not lead it."""
        partitions = self.by_name.get(topic)
        return None if partitions is None else partitions.get(index)

    def leader(self, topic: str, index: int, leader_epoch: int = -1) -> Partition:
        """The partition, if this node leads it, and in `leader_epoch` unless that is -1.

        Raises `KafkaError` UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH or
        KAFKA_STORAGE_ERROR otherwise.
        """
        partition = self.find(topic, index)
        if partition is None:
            raise self.reason_missing(topic, index)
        partition.check_leading(leader_epoch)
        return partition

    def reason_missing(self, topic: str, index: int) -> KafkaError:
        """The error for a partition that `find` does not find."""
        name = TopicPartition(topic, index)
        if (reason := self.offline.get(name)) is not None:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is offline: {reason}")
        state = self._metadata.partition(topic, index)
        if state is None or name in self.deleted:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"{name} is not on node {self.node_id}, its replicas are {list(state.replicas)}: ask for new metadata and go there",
        )

    # Following the metadata

    async def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Create, change and delete partitions as `image` says; `delta` lists what changed. Settings must be applied before.

        The first call must carry all metadata that was committed when the node started: logs that it does not name are renamed
        to strays.
        """
        async with self._following:
            await follow(self, delta, image)
        self.upkeep_is_due()

    async def make_waiting(self) -> None:
        """Create the partitions that wait for file descriptors, if there are some now."""
        async with self._following:
            await make_waiting(self, self._metadata.image)

    def waiting_of(self, topic_id: Uuid) -> int:
        """How many partitions of a topic wait for file descriptors."""
        return sum(new.topic_id == topic_id for new in self.waiting_for_room.values())

    def add(self, partition: Partition) -> None:
        self.offline.pop(partition.name, None)
        self.by_name.setdefault(partition.topic, {})[partition.index] = partition
        self.by_id.setdefault(partition.topic_id, {})[partition.index] = partition

    def remove(self, partition: Partition) -> None:
        for partitions in (self.by_name.get(partition.topic, {}), self.by_id.get(partition.topic_id, {})):
            if partitions.get(partition.index) is partition:
                del partitions[partition.index]
        if not self.by_name.get(partition.topic):
            self.by_name.pop(partition.topic, None)
        if not self.by_id.get(partition.topic_id):
            self.by_id.pop(partition.topic_id, None)

    # Calls from partitions (`PartitionOwner`)

    def has_news(self, partition: Partition) -> None:
        self._wakeups.has_news(partition)

    def has_changed(self, partition: Partition) -> None:
        self._wakeups.has_changed(partition)

    def has_more_for_followers(self, partition: Partition) -> None:
        self._wakeups.has_more_for_followers(partition)

    @property
    def replica_lag_s(self) -> float:
        return self.settings.current.replica_lag_time_max_ms / 1000

    def is_eligible(self, replica: int, broker_epoch: int) -> bool:
        broker = self._metadata.image.cluster.brokers.get(replica)
        return broker is not None and broker.is_active and broker_epoch in (broker.epoch, NO_BROKER_EPOCH)

    def wants_isr_change(self, partition: Partition) -> None:
        if self.on_isr_change is not None:
            self.on_isr_change(partition)

    def upkeep_is_due(self) -> None:
        self._upkeep.look()

    def broken(self, failure: BaseException) -> None:
        logger.critical("%s", failure)
        if self.on_broken is not None:
            self.on_broken(failure)

    # Failed log directories

    def lose_directory(self, failure: LogDirectoryFailed, log: PartitionLog | None = None) -> None:
        """The disk of a log directory has failed: all its partitions are offline from now on."""
        self.directories.note_loss(failure, log)
        self.take_losses()

    def take_losses(self) -> None:
        """Act on directories that have failed since the last call: set their partitions offline, stop the node if needed."""
        for loss in self.directories.take_losses():
            reason = f"its log directory {loss.directory} has failed; the log of this node says why"
            for name in loss.partitions:
                self.set_offline(name, reason)
            if self.on_directory_lost is not None:
                self.on_directory_lost(loss)
            if loss.must_stop is not None:
                logger.critical("%s", loss.must_stop)
                if self.on_must_stop is not None:
                    self.on_must_stop(loss.must_stop)

    def set_offline(self, name: TopicPartition, reason: str) -> None:
        """Refuse a partition from now on with KAFKA_STORAGE_ERROR."""
        self.offline[name] = reason
        partition = self.find(*name)
        if partition is not None:
            self.remove(partition)
            partition.fail(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is offline: {reason}")

    # Running

    def start(self) -> None:
        """Start retention, flushes, checkpoints and compaction in the background."""
        self._upkeep.start()

    async def stop(self) -> None:
        """Stop the background work and wait for steps under way. The logs stay open: `LogDirectories.close` closes them."""
        await self._upkeep.stop()
        for partition in list(self):
            if partition.flushing is not None:
                await partition.flushing
