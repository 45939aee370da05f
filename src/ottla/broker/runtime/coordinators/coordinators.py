"""The group and the transaction coordinator of this node, created when they are first needed.

A coordinator is needed once its internal topic exists. Its code is imported then and not at a start, because many nodes, above
all in tests, never use a group.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ottla.env.repeated_lines import RepeatedLines
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.runtime.coordinators.groups import GroupRuntime
    from ottla.broker.runtime.coordinators.transactions import TransactionRuntime
    from ottla.broker.runtime.producer_ids import ProducerIds
    from ottla.broker.settings import BrokerSettings
    from ottla.env import World
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage


class Coordinators:
    """The group coordinator and the transaction coordinator of one node."""

    def __init__(
        self,
        world: World,
        settings: BrokerSettings,
        partitions: Partitions,
        metadata: MetadataCache,
        producer_ids: ProducerIds,
    ) -> None:
        self._world = world
        self._settings = settings
        self._partitions = partitions
        self._metadata = metadata
        self._producer_ids = producer_ids
        self.complaints = RepeatedLines(world.clock, logging.getLogger("ottla.coordinator"))
        """Log lines that any client can cause."""
        self._groups: GroupRuntime | None = None
        self._transactions: TransactionRuntime | None = None

    @property
    def groups(self) -> GroupRuntime:
        if self._groups is None:
            from ottla.broker.runtime.coordinators.groups import GroupRuntime

            self._groups = GroupRuntime(self._world, self._settings, self._partitions, self._metadata, self.complaints)
        return self._groups

    @property
    def transactions(self) -> TransactionRuntime:
        if self._transactions is None:
            from ottla.broker.runtime.coordinators.transactions import TransactionRuntime

            self._transactions = TransactionRuntime(
                self._world,
                self._settings,
                self._partitions,
                self._metadata,
                self._producer_ids,
                lambda: self.groups,
                self.complaints,
            )
        return self._transactions

    def follow(self) -> None:
        """The node has its first metadata: start to load the shards whose partitions it leads."""
        if OFFSETS_TOPIC in self._partitions.by_name:
            self.groups.follow()
        if TRANSACTIONS_TOPIC in self._partitions.by_name:
            self.transactions.follow()

    def metadata_changed(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata has changed; partitions and settings have been updated already."""
        if self._groups is not None:
            self._groups.metadata_changed(delta, image)
        if self._transactions is not None:
            self._transactions.metadata_changed(delta, image)
        self.follow()

    async def stop(self) -> None:
        """Stop both coordinators."""
        for host in (self._transactions, self._groups):
            if host is not None:
                await host.stop()
