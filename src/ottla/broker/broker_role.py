"""The broker of a node: its partitions and coordinators, its membership in the cluster, and what requests to it need.

`apply` follows the metadata: the node's publisher calls it with each new image. The logs are opened with the first one, because
it has the settings of their topics. `join` registers the broker once that is done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ottla.broker.background import watched
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.membership import NOT_REGISTERED, Membership
from ottla.broker.node_links import NodeLinks
from ottla.broker.node_settings import cleaner_settings
from ottla.broker.partitions.moves import Moves
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.replication.replication import Replication
from ottla.broker.runtime.coordinators.coordinators import Coordinators
from ottla.broker.runtime.producer_ids import ProducerIds
from ottla.broker.services import NodeServices, Services
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.startup import MustStop
from ottla.metadata.features import DIRECTORIES_FROM

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.channel import ControllerChannel
    from ottla.broker.client_telemetry import ClientTelemetry
    from ottla.broker.storage import Storage
    from ottla.log.directories.log_directories import DirectoryLoss, LogDirectories
    from ottla.metadata.image.cluster import Endpoint
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage


_BACK_S = 0.05


def _stop_asking(services: Services) -> None:
    if services.schema_subjects is not None:
        services.schema_subjects.close()


class BrokerRole:
    """The broker of one node. `is_local`: the only controller is in this process. `on_broken` is called when it must stop."""

    def __init__(
        self,
        node: NodeServices,
        storage: Storage,
        channel: ControllerChannel,
        is_local: bool,
        on_broken: Callable[[BaseException], None],
    ) -> None:
        self._node = node
        self._storage = storage
        self._channel = channel
        self._on_broken = on_broken
        self._partitions: Partitions | None = None
        self._services: Services | None = None
        self._telling: set[asyncio.Task[None]] = set()
        config = node.settings.current
        interval_ms = None if is_local else config.broker_heartbeat_interval_ms
        self.membership = Membership(
            channel,
            node.loader,
            node.cluster_id,
            node.node_id,
            interval_ms,
            config.initial_broker_registration_timeout_ms,
            node.world.clock,
        )

    @property
    def epoch(self) -> int:
        """The epoch of the broker's newest registration; -1 before the first."""
        return self.membership.epoch

    # -- following the metadata

    async def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Bring the partitions to `image`; its settings apply already, and requests do not see it yet."""
        if self._partitions is None:
            self._partitions = await self._load()
        await self._partitions.apply(delta, image)

    def applied(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Requests see `image` from now on."""
        self._check_registration(image)
        directories = self._storage.directories
        if directories is not None and directories.cordoned_ids != self.membership.cordoned_directories:
            self._tell(self.membership.tell_cordoned(directories.cordoned_ids))
        mine = image.cluster.brokers.get(self._node.node_id)
        if (
            mine is not None
            and not mine.directories
            and image.metadata_version >= DIRECTORIES_FROM
            and mine.epoch == self.epoch
        ):
            self._tell(self.membership.register_again())
        if self._services is not None:
            self._services.moves.metadata_changed(delta.changed_topics)
            self._services.replication.metadata_changed(delta)
            self._services.coordinators.metadata_changed(delta, image)

    def _check_registration(self, image: MetadataImage) -> None:
        """Come back if someone has unregistered, fenced or shut down this broker; stop if another process has its id.

        Two processes with one id would both lead its partitions, and what one acknowledges the other would not have.
        """
        if self.membership.is_removed(image):
            self._tell(self._back(self.membership.rejoin()))
        elif (other := self.membership.successor(image)) is not None:
            self._on_broken(
                MustStop(
                    f"another process has registered as broker {other.id} (epoch {other.epoch}) while this one did not "
                    "reach the controller: this one stops. If both are meant to run, give one of them another node.id"
                )
            )
        elif self.membership.is_shut_out(image):
            self._tell(self._back(self.membership.come_back(image, self._node.world.randomness.new_uuid())))

    async def _back(self, coming: Coroutine[Any, Any, None]) -> None:
        """Come back into the cluster, and again if somebody has changed the registration meanwhile."""
        await coming
        await asyncio.sleep(_BACK_S)
        self._check_registration(self._node.loader.published)

    async def _load(self) -> Partitions:
        """Open the logs, now that the settings of their topics are known."""
        world, settings, compactor = self._node.world, self._node.settings, None
        if world.helpers is not None:
            compactor = Compactor(world.disk, world.clock, world.helpers, cleaner_settings(settings.current.log))
        locked = self._storage.locked
        directories = self._storage.directories = await locked.load(settings.topic_config, compactor=compactor)
        partitions = Partitions(self._node.node_id, world, settings, directories, self._node.metadata)
        partitions.on_must_stop = lambda reason: self._on_broken(MustStop(reason))
        partitions.on_broken = self._on_broken
        partitions.on_directory_lost = self._tell_lost
        return partitions

    # -- joining and leaving

    async def join(self, endpoints: Sequence[Endpoint], stopping: AsyncExitStack) -> Services:
        """Register in the cluster and start to work; `stopping` gets what ends it. Returns the services for requests."""
        services = self._make_services()
        await self._register(endpoints, services.directories, services.partitions)
        stopping.push_async_callback(self.membership.leave)
        services.partitions.start()
        stopping.push_async_callback(services.partitions.stop)
        self._services = services
        services.replication.start()
        stopping.push_async_callback(services.replication.stop)
        services.coordinators.follow()
        stopping.callback(_stop_asking, services)
        services.moves.start()
        stopping.push_async_callback(services.moves.stop)
        return services

    def _make_services(self) -> Services:
        node, directories, partitions = self._node, self._storage.directories, self._partitions
        assert directories is not None, "the first image is published before the broker joins"
        assert partitions is not None, "the first image is published before the broker joins"
        producer_ids = ProducerIds(node.node_id, self._channel, lambda: self.epoch)
        return Services(
            node_id=node.node_id,
            cluster_id=node.cluster_id,
            world=node.world,
            settings=node.settings,
            metadata=node.metadata,
            quorum=node.quorum,
            loader=node.loader,
            controller=node.controller,
            scheduler=node.scheduler,
            authorization=node.authorization,
            throttling=node.throttling,
            quotas=node.quotas,
            elections=node.elections,
            channel=self._channel,
            membership=self.membership,
            directories=directories,
            partitions=partitions,
            replication=Replication(
                partitions,
                node.metadata,
                node.settings,
                NodeLinks.to_brokers(node.world, node.settings),
                self._channel,
                lambda: self.epoch,
            ),
            moves=Moves(partitions, node.metadata, self._channel, lambda: self.epoch),
            fetch_sessions=FetchSessions(node.world.clock, node.world.randomness, node.settings),
            producer_ids=producer_ids,
            coordinators=Coordinators(node.world, node.settings, partitions, node.metadata, producer_ids),
            telemetry=_telemetry(node),
        )

    async def _register(self, endpoints: Sequence[Endpoint], directories: LogDirectories, partitions: Partitions) -> None:
        online = [each for each in directories.directories if each.is_online]
        # Nothing was lost only if all directories are online and have the mark of a clean shutdown, with the same broker epoch.
        epochs = {each.found.broker_epoch if each.is_online and each.found else None for each in directories.directories}
        last_epoch = epochs.pop() if len(epochs) == 1 else None
        incarnation_id = partitions.incarnation_id = self._node.world.randomness.new_uuid()
        await self.membership.join(
            endpoints,
            [each.directory_id for each in online if each.directory_id is not None],
            directories.cordoned_ids,
            rack=self._node.settings.current.broker_rack,
            incarnation_id=incarnation_id,
            last_epoch=NOT_REGISTERED if last_epoch is None else last_epoch,
        )

    # -- reporting to the controller

    def _tell_lost(self, loss: DirectoryLoss) -> None:
        if loss.must_stop is None and loss.directory_id is not None:
            self._tell(self.membership.tell_lost(loss.directory_id))
            if self._services is not None:
                self._services.moves.directory_lost()

    def _tell(self, telling: Coroutine[Any, Any, None]) -> None:
        """Run a report to the controller in the background."""
        task = watched("a report to the controller", telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)


def _telemetry(node: NodeServices) -> ClientTelemetry | None:
    if node.settings.current.metrics_address is None:
        return None
    from ottla.broker.client_telemetry import ClientTelemetry  # late: most nodes serve no metrics

    return ClientTelemetry()
