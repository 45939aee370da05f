"""One node: assembles all parts, starts them in order and shuts them down cleanly. The only file that knows them all.

Start: check the settings, lock the directories, bind the ports; then load the metadata log and lead its quorum, load the logs
with their topics' settings, and join the cluster. From then on requests are answered; earlier connections wait until then.
Stop, in the opposite order: accept no connections, answer the requests under way, leave the cluster, close the logs with the
mark of a clean shutdown.

`broken` is set when the node cannot go on: too many disks have failed, or an invariant is broken. Its owner then stops it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from ottla.broker.dispatch import Dispatcher
from ottla.broker.fetch_sessions import FetchSessions
from ottla.broker.hosts.controller import ControllerHost
from ottla.broker.hosts.coordinators.coordinators import Coordinators
from ottla.broker.hosts.producer_ids import ProducerIds
from ottla.broker.hosts.quorum import QuorumHost
from ottla.broker.membership import Membership
from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.net.listeners import Listeners
from ottla.broker.node_settings import (
    address_text,
    cleaner_settings,
    controller_settings,
    endpoints_of,
    net_settings,
    warn_of_settings,
)
from ottla.broker.partitions.moving import Moves
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.services import Services
from ottla.broker.settings import BrokerSettings
from ottla.errors import BrokenInvariant, OttlaError
from ottla.log.compaction.compactor import Compactor
from ottla.log.directories.log_directories import DirectoryLoss, LogDirectories
from ottla.log.directories.log_directory import DirectoryWorld
from ottla.log.directories.opening import LockedDirectories, MustStop, lock_directories
from ottla.records.kernels import variant

if TYPE_CHECKING:
    from ottla.env import World
    from ottla.metadata.image.cluster import Endpoint
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage

logger = logging.getLogger("ottla.node")


class Node:
    """A running node. Created by `start`."""

    def __init__(self, world: World, settings: BrokerSettings) -> None:
        self._world = world
        self._settings = settings
        self._metadata = MetadataCache()
        self._membership: Membership | None = None
        self._partitions: Partitions | None = None
        self._stopping = AsyncExitStack()  # stops parts in the opposite order of their start
        self._telling: set[asyncio.Task[None]] = set()
        self._broker_endpoints: list[Endpoint] = []
        self.dispatcher = Dispatcher()
        self.dispatcher.on_broken = self._break
        self.dispatcher.lane.workers = world.compute
        self.listeners = Listeners(world, net_settings(settings.current), self.dispatcher)
        self.node_id = settings.current.node_id
        self.cluster_id = ""
        self.metrics_port: int | None = None
        """The port of the metrics page; None if it is not served."""
        self.broken: asyncio.Future[OttlaError] = asyncio.get_running_loop().create_future()
        """Set, with the reason, when the node cannot go on and must be stopped."""

    @classmethod
    async def start(cls, world: World, settings: Mapping[str, str], *, hostname: str = "localhost") -> Node:
        """Start a node with the texts of a `server.properties`; its directories must be formatted.

        Raises an `OttlaError` with a one-sentence reason if it cannot start; ports and locks are released then.
        """
        node = cls(world, BrokerSettings(settings, hostname=hostname))
        try:
            warn_of_settings(settings)
            await node._start()
        except BaseException:
            await node._stopping.aclose()
            raise
        return node

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap.servers setting for clients of this node."""
        return ",".join(address_text(each.host, each.port) for each in self._broker_endpoints)

    @property
    def services(self) -> Services:
        services = self.dispatcher.services
        assert services is not None, "a started node has its services"
        return services

    # -- starting

    async def _start(self) -> None:
        world, config = self._world, self._settings.current
        log_world = DirectoryWorld(world.disk, world.clock, world.randomness.new_uuid, world.helpers)
        storage = Storage(await lock_directories(log_world, config.log, node_id=self.node_id))
        self._stopping.push_async_callback(self._close_storage, storage)
        self.cluster_id = storage.locked.cluster_id
        bound = await self.listeners.open(config.listeners, config.controller_listener_names, config.inter_broker_listener_name)
        self._stopping.callback(self.listeners.abort)
        self._broker_endpoints = endpoints_of(config.advertised_listeners, bound)
        quorum = await QuorumHost.open(world, config, storage.locked.metadata_directory_id)
        self._stopping.push_async_callback(quorum.close)
        quorum.failure.add_done_callback(lambda failure: self._break(failure.result()))
        controller = ControllerHost(
            world,
            config,
            controller_settings(self.cluster_id, self._settings),
            quorum,
            lambda delta, image: self._publish(storage, delta, image),
        )
        self._stopping.push_async_callback(controller.close)
        self._membership = Membership(controller, self.cluster_id, self.node_id)
        await controller.start(endpoints_of(config.advertised_controller_listeners, bound))
        services = self._services(storage, quorum, controller)
        await self._join(self._membership, services.directories)
        self._stopping.push_async_callback(self._membership.leave)
        services.partitions.start()
        self._stopping.push_async_callback(services.partitions.stop)
        services.coordinators.follow()
        services.moves.start()
        self._stopping.push_async_callback(services.moves.stop)
        if config.ottla_metrics_port >= 0:
            await self._serve_metrics(services, config.broker_listeners[0].host, config.ottla_metrics_port)
        self.dispatcher.services = services
        self.listeners.serve()
        self._stopping.push_async_callback(self.listeners.close)
        # Stopped first: parked group requests are refused at once, so that they do not delay the closing of connections.
        self._stopping.push_async_callback(services.coordinators.stop)
        logger.info(
            "node %d of cluster %s is up at %s (%s kernels)", self.node_id, self.cluster_id, self.bootstrap_servers, variant()
        )

    def _services(self, storage: Storage, quorum: QuorumHost, controller: ControllerHost) -> Services:
        directories, partitions = storage.directories, self._partitions
        assert directories is not None, "the first image is published before the controller has started"
        assert partitions is not None, "the first image is published before the controller has started"
        producer_ids = ProducerIds(self.node_id, controller, lambda: self._epoch)
        return Services(
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            world=self._world,
            settings=self._settings,
            metadata=self._metadata,
            quorum=quorum,
            controller=controller,
            directories=directories,
            partitions=partitions,
            moves=Moves(partitions, self._metadata, controller),
            fetch_sessions=FetchSessions(self._world.clock, self._world.randomness, self._settings),
            producer_ids=producer_ids,
            coordinators=Coordinators(self._world, self._settings, partitions, self._metadata, producer_ids),
            lane=self.dispatcher.lane,
        )

    async def _serve_metrics(self, services: Services, host: str, port: int) -> None:
        from ottla.broker.metrics import NodeMetrics  # late: most nodes serve no metrics
        from ottla.broker.metrics_server import MetricsServer

        page = NodeMetrics(services, self.dispatcher.counters).page
        server = await MetricsServer.start(self._world.network, host, port, page)
        self._stopping.push_async_callback(server.stop)
        self.metrics_port = server.port

    async def _join(self, membership: Membership, directories: LogDirectories) -> None:
        online = [each for each in directories.directories if each.is_online]
        # Nothing was lost only if all directories have the mark of a clean shutdown, with the same broker epoch.
        epochs = {None if each.found is None else each.found.broker_epoch for each in online}
        last_epoch = epochs.pop() if len(epochs) == 1 else None
        await membership.join(
            self._broker_endpoints,
            [each.directory_id for each in online if each.directory_id is not None],
            directories.cordoned_ids,
            rack=self._settings.current.broker_rack,
            incarnation_id=self._world.randomness.new_uuid(),
            last_epoch=-1 if last_epoch is None else last_epoch,
        )

    # -- following the metadata

    async def _publish(self, storage: Storage, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply newly committed metadata to settings and partitions, then let requests see it."""
        change = self._settings.apply(delta, image)
        if self._partitions is None:
            self._partitions = await self._load(storage)
        elif change.attributes:
            self.listeners.apply(net_settings(self._settings.current))
        await self._partitions.apply(delta, image)
        self._metadata.image = image
        if delta.features_changed:
            self._metadata.features_offset = image.provenance.offset
        if self._membership is not None and storage.directories is not None:
            cordoned = storage.directories.cordoned_ids
            if cordoned != self._membership.cordoned_directories:
                self._tell(self._membership.tell_cordoned(cordoned))
        if self.dispatcher.services is not None:
            self.dispatcher.services.moves.metadata_changed()
            self.dispatcher.services.coordinators.metadata_changed(delta, image)

    async def _load(self, storage: Storage) -> Partitions:
        """Open the logs, now that the settings of their topics are known."""
        world, compactor = self._world, None
        if world.helpers is not None:
            compactor = Compactor(world.disk, world.clock, world.helpers, cleaner_settings(self._settings.current.log))
        directories = storage.directories = await storage.locked.load(self._settings.topic_config, compactor=compactor)
        partitions = Partitions(self.node_id, world, self._settings, directories, self._metadata)
        partitions.on_must_stop = lambda reason: self._break(MustStop(reason))
        partitions.on_broken = self._break
        partitions.on_directory_lost = self._tell_lost
        return partitions

    @property
    def _epoch(self) -> int:
        return -1 if self._membership is None else self._membership.epoch

    # -- failing

    def _break(self, reason: BaseException) -> None:
        if not self.broken.done():
            self.broken.set_result(
                reason if isinstance(reason, OttlaError) else BrokenInvariant(f"{type(reason).__name__}: {reason}")
            )

    def _tell_lost(self, loss: DirectoryLoss) -> None:
        if loss.must_stop is None and loss.directory_id is not None and self._membership is not None:
            self._tell(self._membership.tell_lost(loss.directory_id))

    def _tell(self, telling: Coroutine[Any, Any, None]) -> None:
        """Run a report to the controller in the background."""
        task = asyncio.get_running_loop().create_task(telling)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    # -- stopping

    async def stop(self) -> None:
        """Shut down cleanly, as far as that is still possible. Stopping twice does nothing."""
        await self._stopping.aclose()
        logger.info("node %d has stopped", self.node_id)

    async def _close_storage(self, storage: Storage) -> None:
        is_trusted = not (self.broken.done() and isinstance(self.broken.result(), BrokenInvariant))
        if storage.directories is not None and is_trusted:
            await storage.directories.close(self._epoch)
        else:
            storage.locked.release()  # no mark of a clean shutdown: the next start recovers all logs


class Storage:
    """The log directories, locked first and loaded later."""

    __slots__ = ("directories", "locked")

    def __init__(self, locked: LockedDirectories) -> None:
        self.locked = locked
        self.directories: LogDirectories | None = None
