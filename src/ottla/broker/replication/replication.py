"""The replication of one broker: a fetcher per leader for the partitions it follows, and the ISRs of those it leads.

`metadata_changed` follows the metadata, after it was applied to the partitions. Every half of replica.lag.time.max.ms the
replicas that lag are dropped from ISRs. One event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ottla.broker.background import lasting
from ottla.broker.replication.quota import ReplicationQuota
from ottla.metadata.image.topics import NO_LEADER

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.node_links import NodeLinks
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.replication.fetcher import ReplicaFetcher
    from ottla.broker.replication.isr_changes import IsrChanges
    from ottla.broker.settings import BrokerSettings
    from ottla.ids import Uuid
    from ottla.metadata.image.delta import MetadataDelta

_TICK_AGAIN_S = 5.0
"""How soon ISRs are looked at again after an unexpected failure."""


class IsrCounters:
    """The changes of ISRs since the node started, for the metrics page."""

    __slots__ = ("expands", "failures", "shrinks")

    def __init__(self) -> None:
        self.expands = 0
        self.shrinks = 0
        self.failures = 0
        """Changes that the controller was asked for and has not made."""


class Replication:
    """The replication of the partitions of one broker, between `start` and `stop`."""

    def __init__(
        self,
        partitions: Partitions,
        metadata: MetadataCache,
        settings: BrokerSettings,
        to_brokers: NodeLinks,
        channel: ControllerChannel,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._partitions = partitions
        self._metadata = metadata
        self._settings = settings
        self._to_brokers = to_brokers
        self._broker_epoch = broker_epoch
        self._channel = channel
        self._isr_changes: IsrChanges | None = None
        self.isr_counters = IsrCounters()
        config = settings.current
        windows = (config.replication_quota_window_num, config.replication_quota_window_size_seconds)
        self.leader_quota = ReplicationQuota(*windows)
        """The bytes sent to throttled replicas."""
        self.follower_quota = ReplicationQuota(*windows)
        """The bytes fetched for throttled replicas of this broker."""
        self._fetchers: dict[int, ReplicaFetcher] = {}
        self._leaders: dict[Uuid, dict[int, int]] = {}
        """Topic → partition → the leader that it is fetched from."""
        self._ticking: asyncio.Task[None] | None = None
        self._is_stopped = True

    def start(self) -> None:
        """Begin to replicate what the metadata says so far."""
        self._is_stopped = False
        self._partitions.on_isr_change = self._change_isr
        self._follow(self._partitions)

    async def stop(self) -> None:
        """Replicate no more."""
        self._is_stopped = True
        self._partitions.on_isr_change = None
        if self._ticking is not None:
            self._ticking.cancel()
            await asyncio.gather(self._ticking, return_exceptions=True)
        if self._isr_changes is not None:
            await self._isr_changes.stop()
        await asyncio.gather(*(fetcher.stop() for fetcher in self._fetchers.values()))

    def metadata_changed(self, delta: MetadataDelta) -> None:
        """Requests see new metadata: follow the partitions' leaders."""
        if self._is_stopped:
            return
        for topic in delta.deleted_topics.values():
            self._drop(topic.id, self._leaders.get(topic.id, ()))
            self._leaders.pop(topic.id, None)
        for topic_id in sorted(delta.changed_topics):
            held = self._partitions.by_id.get(topic_id, {})
            self._drop(topic_id, self._leaders.get(topic_id, {}).keys() - held.keys())
            self._follow(held.values())
        for broker_id in delta.changed_brokers & self._fetchers.keys():
            self._fetchers[broker_id].leader_changed()
        if delta.changed_brokers:
            for partition in self._partitions:
                if partition.in_sync is not None:  # who may be in sync has changed, and so what the high watermark waits for
                    partition.count_in_sync()
                    partition.advance()

    def _follow(self, partitions: Iterable[Partition]) -> None:
        for partition in partitions:
            if len(partition.replicas) > 1:
                self._tick()
            elif partition.topic_id not in self._leaders:
                continue
            leaders = self._leaders.setdefault(partition.topic_id, {})
            before = leaders.get(partition.index, NO_LEADER)
            leader = NO_LEADER if partition.leader == partition.node_id else partition.leader
            if before not in (NO_LEADER, leader):
                self._drop(partition.topic_id, [partition.index])
            if leader != NO_LEADER:
                leaders[partition.index] = leader
                self._fetcher(leader).follow(partition)

    def _drop(self, topic_id: Uuid, indexes: Iterable[int]) -> None:
        """Fetch these partitions no more."""
        for index in list(indexes):
            self._fetchers[self._leaders[topic_id].pop(index)].unfollow((topic_id, index))

    def _fetcher(self, leader: int) -> ReplicaFetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            from ottla.broker.replication.fetcher import ReplicaFetcher  # late: a single node has none

            fetcher = self._fetchers[leader] = ReplicaFetcher(
                leader,
                self._partitions,
                self._metadata,
                self._settings,
                self._to_brokers,
                self._broker_epoch,
                self.follower_quota,
            )
        return fetcher

    def lags(self) -> dict[int, int]:
        """Leader → the most records of one partition that this broker lacks of what the leader has committed."""
        return {leader: fetcher.machine.lag_max for leader, fetcher in self._fetchers.items()}

    # -- who is in sync

    def _change_isr(self, partition: Partition) -> None:
        if self._isr_changes is None:
            from ottla.broker.replication.isr_changes import IsrChanges  # late: a single node has none

            self._isr_changes = IsrChanges(partition.node_id, self._channel, self._broker_epoch, self.isr_counters)
        self._isr_changes.ask(partition)

    def _tick(self) -> None:
        if self._ticking is None:
            self._ticking = lasting("looking for replicas that lag", self._drop_lagging, _TICK_AGAIN_S)

    async def _drop_lagging(self) -> None:
        while True:
            await asyncio.sleep(self._settings.current.replica_lag_time_max_ms / 2000)
            for partition in list(self._partitions):
                partition.drop_lagging()
            self._follow(list(self._partitions))  # some may have been created since, when files could be opened again
