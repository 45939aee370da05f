"""One node: assembles the parts of its roles, starts them in order and shuts them down cleanly.

Every node has a replica of the metadata log, a metadata loader and the listeners of its roles; `broker/broker_role.py` adds a
broker. Start: check the settings, lock the directories, bind the ports; then load the metadata log and lead its quorum. The
broker loads the logs with their topics' settings and joins the cluster. From then on requests are answered; earlier connections
wait until then. Stop, in the opposite order: accept no connections, answer the requests under way, leave the cluster, close the
logs with the mark of a clean shutdown. A broker among several leaves first, so that others lead before it refuses anything.

`broken` is set when the node cannot go on: too many disks have failed, or an invariant is broken. Its owner then stops it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from ottla.broker.background import watched
from ottla.broker.channel.forwarded import LocalChannel
from ottla.broker.checks.at_start import AtStart
from ottla.broker.logins import NodeLogins
from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.net.listeners import Listeners
from ottla.broker.node_links import NodeLinks
from ottla.broker.node_settings import (
    address_text,
    controller_settings,
    endpoints_of,
    net_settings,
    quota_windows,
    warn_of_settings,
)
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.broker.requests.quotas import ClientQuotas
from ottla.broker.runtime.activation import is_new_cluster
from ottla.broker.runtime.cluster_metrics import ElectionCounter
from ottla.broker.runtime.controller import ControllerRuntime
from ottla.broker.runtime.controller_registration import ControllerRegistrar
from ottla.broker.runtime.metadata_loader import MetadataLoader
from ottla.broker.runtime.quorum import QuorumRuntime
from ottla.broker.runtime.snapshot_writer import SnapshotWriter
from ottla.broker.runtime.start import join_metadata, start_metadata, unless_given_up, wait_joined
from ottla.broker.services import NodeServices, Services
from ottla.broker.settings import BrokerSettings
from ottla.broker.storage import Storage
from ottla.broker.supervision import Supervision
from ottla.broker.tls_stores import TlsStores
from ottla.config.listeners import SECURITY_PROTOCOLS
from ottla.config.values import InvalidConfig
from ottla.errors import BrokenInvariant, OttlaError
from ottla.log.directories.log_directory import DirectoryWorld
from ottla.log.directories.startup import lock_directories
from ottla.metadata.authorizer import StandardAuthorizer
from ottla.records.kernels import variant

if TYPE_CHECKING:
    from ottla.broker.broker_role import BrokerRole
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.metrics_server import MetricsServer
    from ottla.broker.runtime.controller_registration import ControllerRegistrar
    from ottla.env import World
    from ottla.metadata.image.cluster import Endpoint
    from ottla.metadata.image.delta import MetadataDelta
    from ottla.metadata.image.image import MetadataImage

logger = logging.getLogger("ottla.node")

_NOT_REGISTERED = -1


class Node:
    """A running node. Created by `start`."""

    def __init__(self, world: World, settings: BrokerSettings, given_up: asyncio.Event | None = None) -> None:
        self._world = world
        self._given_up = given_up
        self._settings = settings
        self._metadata = MetadataCache()
        self._broker: BrokerRole | None = None
        self._elections = ElectionCounter()
        self._storage: Storage | None = None
        self._doing = "locking log directories"
        """What the start does, for the service manager."""
        self.supervision = Supervision(world.supervisor)
        self.supervision.starting = self._starting
        self._registrar: ControllerRegistrar | None = None
        self._stopping = AsyncExitStack()  # stops parts in the opposite order of their start
        self._endpoints: list[Endpoint] = []
        self._quotas = ClientQuotas(*quota_windows(settings.current))
        self.pipeline = RequestPipeline()
        self.pipeline.on_broken = self._break
        self.pipeline.scheduler.workers = world.compute
        self.pipeline.health.watch(world.loop_watch)
        self._authorizer: StandardAuthorizer | None = None
        if settings.current.authorizer is not None:
            self._authorizer = self.pipeline.authorization.authorizer = StandardAuthorizer(settings.current.authorizer)
        self._logins = NodeLogins(
            world, settings.static, lambda: self._metadata.image.security, lambda: not is_new_cluster(self._metadata.image)
        )
        self.listeners = Listeners(world, net_settings(settings.current), self.pipeline, self._logins.of)
        self._quorum_listeners: Listeners | None = None
        """The controller's listeners if they are served longer than the broker's: the other voters need them."""
        self.checked = AtStart()
        self.node_id = settings.current.node_id
        self.cluster_id = ""
        self.metrics_port: int | None = None
        """The port of the metrics page; None if it is not served."""
        self.stay_in_quorum: Callable[[], Awaitable[None]] | None = None
        """Awaited by `stop` between leaving the cluster and leaving the quorum: brokers that stop at the same time need it."""
        self._is_up = self._is_stopping = False
        self.broken: asyncio.Future[OttlaError] = asyncio.get_running_loop().create_future()
        """Set, with the reason, when the node cannot go on and must be stopped."""

    @classmethod
    async def start(
        cls,
        world: World,
        settings: Mapping[str, str],
        *,
        hostname: str = "localhost",
        given_up: asyncio.Event | None = None,
    ) -> Node:
        """Start a node with the texts of a `server.properties`; its directories must be formatted.

        It waits for other nodes of its quorum until `given_up` is set, and then raises `StartGivenUp`.

        Raises an `OttlaError` with a one-sentence reason if it cannot start; ports and locks are released then.
        """
        node = cls(world, BrokerSettings(settings, hostname=hostname), given_up)
        try:
            warn_of_settings(settings)
            node.supervision.begin()
            await node._start()
        except BaseException:
            await node._stopping.aclose()
            node.supervision.close()
            raise
        return node

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap.servers setting for clients of this node; bootstrap.controllers if it has no broker."""
        return ",".join(address_text(each.host, each.port) for each in self._endpoints)

    def servers_with(self, protocol: str) -> str:
        """The bootstrap.servers setting for clients with this security.protocol; empty if no listener has it."""
        number = SECURITY_PROTOCOLS[protocol]
        return ",".join(address_text(each.host, each.port) for each in self._endpoints if each.security_protocol == number)

    @property
    def services(self) -> Services:
        """The services of the node's broker."""
        services = self.pipeline.services
        assert isinstance(services, Services), "a started node with a broker has its services"
        return services

    # -- starting

    async def _start(self) -> None:
        world, config = self._world, self._settings.current
        log_world = DirectoryWorld(world.disk, world.clock, world.randomness.new_uuid, world.helpers)
        storage = self._storage = Storage(await lock_directories(log_world, config.log, node_id=self.node_id))
        self._stopping.push_async_callback(self._close_storage, storage)
        self.cluster_id = storage.locked.cluster_id
        self._doing = "reading the metadata log"
        quorum = await self._open_quorum(storage)
        is_alone = config.is_controller and quorum.is_alone
        self._stopping.callback(self._logins.close)
        bound = await self._open_listeners(is_apart=config.is_broker and config.is_controller and not is_alone)
        metrics = await self._open_metrics()
        self._watch_stores()
        if not is_alone:
            NodeLinks.to_controllers(self._world, self._settings).check()
            if config.is_broker:
                NodeLinks.to_brokers(self._world, self._settings).check()
        self._logins.start()
        controller_endpoints = endpoints_of(config.advertised_controller_listeners, bound)
        self._endpoints = endpoints_of(config.advertised_listeners, bound) if config.is_broker else controller_endpoints
        node = self._open_metadata(quorum, controller_endpoints)
        channel = self._channel(node, is_alone)
        if config.is_controller and not is_alone:
            self._registrar = ControllerRegistrar(node.controller, channel)
            self._stopping.push_async_callback(self._registrar.close)
        if config.is_broker:
            await self._start_broker(node, storage, channel, is_alone, metrics)
        else:
            await self._start_controller(node, metrics)
        self._is_up = True
        logger.info(
            "node %d of cluster %s is up at %s (%s kernels)", self.node_id, self.cluster_id, self.bootstrap_servers, variant()
        )
        if world.system is not None and config.ottla_check_enable:
            checking = watched("the check of the machine", self.checked.run(world.system, world.compute, config))
            self._stopping.callback(checking.cancel)
        self.supervision.ready(self._served)

    @property
    def _served(self) -> str:
        return f"node {self.node_id} of cluster {self.cluster_id}, at {self.bootstrap_servers}"

    def _starting(self) -> tuple[str, bool]:
        """What the start does, and whether it opens logs, which may take long."""
        if self._storage is not None and self._storage.locked.progress.is_under_way:
            return str(self._storage.locked.progress), True
        return self._doing, False

    async def _open_listeners(self, *, is_apart: bool) -> dict[str, tuple[str, int]]:
        """Bind the ports; with `is_apart` the controller's listeners are served apart from the broker's."""
        config = self._settings.current
        names, mine = config.controller_listener_names, list(config.listeners)
        bound: dict[str, tuple[str, int]] = {}
        if is_apart:
            pipeline = RequestPipeline()
            pipeline.on_broken = self._break
            pipeline.scheduler.workers = self._world.compute
            pipeline.authorization = self.pipeline.authorization
            pipeline.throttling = self.pipeline.throttling
            self._quorum_listeners = Listeners(self._world, net_settings(config), pipeline, self._logins.of)
            bound = await self._quorum_listeners.open([each for each in mine if each.name in names], names)
            self._stopping.callback(self._quorum_listeners.abort)
            mine = [each for each in mine if each.name not in names]
        bound |= await self.listeners.open(mine, names, config.inter_broker_listener_name)
        self._stopping.callback(self.listeners.abort)
        return bound

    def _watch_stores(self) -> None:
        """Note what the TLS listeners show, for changes while the node runs."""
        config = self._settings.current
        if any(config.listener_security[each.name].uses_tls for each in config.listeners):
            self._settings.stores = TlsStores(self._world.network, self._settings.static, config)

    async def _start_broker(
        self, node: NodeServices, storage: Storage, channel: ControllerChannel, is_alone: bool, metrics: MetricsServer | None
    ) -> None:
        """Lead the quorum of one, or take part in that of several nodes; join its cluster, and serve all listeners."""
        from ottla.broker.broker_role import BrokerRole  # late: a controller needs none of it

        config, controller = self._settings.current, node.controller
        self._broker = BrokerRole(node, storage, channel, is_alone, self._break)
        controller.own_broker_epoch = lambda: self._epoch
        if is_alone:
            await start_metadata(node.quorum, node.loader, controller, controller.endpoints)
        else:
            await join_metadata(node.quorum, node.loader, controller, controller.endpoints if config.is_controller else ())
            self._serve_quorum(node)
            self._doing = "waiting for a controller"
            await unless_given_up(wait_joined(node.quorum, node.loader), self._given_up)
        self._doing = "joining the cluster"
        joining = self._broker.join(self._endpoints, self._stopping)
        services = await (joining if is_alone else unless_given_up(joining, self._given_up))
        self._serve_metrics(metrics, services)
        self._serve(services)
        # Stopped early: parked group requests are refused at once, so that they do not delay the closing of connections.
        self._stopping.push_async_callback(services.coordinators.stop)
        if not is_alone:  # before that, others take over what this broker leads, while it still answers clients and replicas
            self._stopping.push_async_callback(self._broker.membership.leave)

    def _serve_quorum(self, node: NodeServices) -> None:
        """Answer the other voters from now on, until this node's broker has left the cluster."""
        if self._quorum_listeners is not None:
            self._quorum_listeners.pipeline.services = node
            self._quorum_listeners.serve()
            self._stopping.push_async_callback(self._quorum_listeners.close)
            self._stopping.push_async_callback(self._stay_in_quorum)

    async def _stay_in_quorum(self) -> None:
        if self.stay_in_quorum is not None and not self.broken.done():
            await self.stay_in_quorum()

    def _channel(self, node: NodeServices, is_alone: bool) -> ControllerChannel:
        if is_alone:
            return LocalChannel(node)
        from ottla.broker.channel.links import Address, ControllerLinks
        from ottla.broker.channel.remote import RemoteChannel

        listener = self._settings.current.controller_listener_names[0]

        def leader() -> Address | None:
            facts = node.quorum.facts()
            # A broker that knows its controllers by bootstrap servers alone gets the leader's address from the others' answers.
            endpoints = facts.endpoints.get(facts.leader_id) or node.quorum.replica.leader_endpoints
            endpoint = endpoints.get(listener)
            return None if endpoint is None else Address(facts.leader_id, *endpoint, facts.leader_epoch)

        links = ControllerLinks(NodeLinks.to_controllers(self._world, self._settings), self.node_id)
        self._stopping.callback(links.close)
        return RemoteChannel(links, leader, node if self._settings.current.is_controller else None)

    async def _start_controller(self, node: NodeServices, metrics: MetricsServer | None) -> None:
        """Serve the controller's listeners, which the other voters need to elect a leader; then wait for one."""
        await join_metadata(node.quorum, node.loader, node.controller, node.controller.endpoints)
        self._serve_metrics(metrics, node)
        self._serve(node)
        self._doing = "waiting for a controller"
        await unless_given_up(wait_joined(node.quorum, node.loader), self._given_up)

    def _serve(self, services: NodeServices) -> None:
        self.pipeline.services = services
        self.listeners.serve()
        self._stopping.push_async_callback(self.listeners.close)

    async def _open_quorum(self, storage: Storage) -> QuorumRuntime:
        quorum = await QuorumRuntime.open(
            self._world,
            self._settings.current,
            storage.locked.metadata_directory_id,
            self.cluster_id,
            NodeLinks.to_controllers(self._world, self._settings),
        )
        self._stopping.push_async_callback(quorum.close)
        quorum.failure.add_done_callback(lambda failure: self._break(failure.result()))
        return quorum

    def _open_metadata(self, quorum: QuorumRuntime, endpoints: list[Endpoint]) -> NodeServices:
        """The parts that decide and follow the metadata. They do not run yet."""
        world, config = self._world, self._settings.current
        loader = MetadataLoader(self._publish, SnapshotWriter(world.clock, config, quorum))
        self._stopping.push_async_callback(loader.close)
        loader.failure.add_done_callback(lambda failure: self._break(failure.result()))
        settings = controller_settings(self.cluster_id, self._settings)
        controller = ControllerRuntime(world, config, settings, quorum, loader, endpoints)
        self._stopping.callback(controller.close)
        return NodeServices(
            node_id=self.node_id,
            cluster_id=self.cluster_id,
            world=world,
            settings=self._settings,
            metadata=self._metadata,
            quorum=quorum,
            loader=loader,
            controller=controller,
            scheduler=self.pipeline.scheduler,
            authorization=self.pipeline.authorization,
            throttling=self.pipeline.throttling,
            quotas=self._quotas,
            elections=self._elections,
        )

    async def _open_metrics(self) -> MetricsServer | None:
        """Answer probes from now on: a node that recovers large logs is alive, and not ready."""
        address = self._settings.current.metrics_address
        if address is None:
            return None
        from ottla.broker.metrics_server import MetricsServer  # late: most nodes serve no metrics

        server = await MetricsServer.start(self._world.network, *address, self)
        self._stopping.push_async_callback(server.stop)
        self.metrics_port = server.port
        return server

    def _serve_metrics(self, server: MetricsServer | None, services: NodeServices) -> None:
        if server is not None:
            from ottla.broker.metrics import NodeMetrics  # late: as above

            broker = services if isinstance(services, Services) else None
            metrics = NodeMetrics(services, self.pipeline.counters, self.pipeline.health, broker, self.checked.failed)
            server.pages = metrics.pages()

    # -- health, for probes

    def failure(self) -> str | None:
        """Why this node cannot go on and must be started again; None if it can."""
        return str(self.broken.result()) if self.broken.done() else None

    def unready(self, with_isr: bool = False) -> list[str]:
        """Why this node cannot serve clients now; empty if it can. `with_isr`: also what is not in sync here."""
        if (failure := self.failure()) is not None:
            return [failure]
        if self._is_stopping:
            return ["the node is stopping"]
        if not self._is_up:
            return [f"the node is starting: {self._starting()[0]}"]
        services = self.pipeline.services
        assert services is not None, "the node is up"
        if self._broker is None:
            return [] if services.quorum.leader_id >= 0 else ["the controllers have no leader"]
        reasons = []
        mine = self._metadata.image.cluster.brokers.get(self.node_id)
        if mine is None or mine.fenced:
            reasons.append(f"the controller has {'fenced broker' if mine else 'no registration of broker'} {self.node_id}")
        silent_ms, limit_ms = self._broker.membership.silent_ms(), self._settings.current.broker_session_timeout_ms
        if silent_ms > limit_ms:
            reasons.append(f"no controller has answered for {silent_ms // 1000} s: what clients see of the cluster is old")
        if with_isr:
            partitions = list(self.services.partitions)
            lacking = [each for each in partitions if each.is_leading and len(each.isr) < len(each.replicas)]
            behind = [each for each in partitions if not each.is_leading and self.node_id not in each.isr]
            for few, words in ((lacking, "led here lack replicas in sync"), (behind, "are not in sync here")):
                if few:
                    reasons.append(f"{len(few)} of {len(partitions)} partitions {words}, such as {few[0].name}")
        return reasons

    # -- following the metadata

    async def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply newly committed metadata to settings and partitions, then let requests see it."""
        change = self._settings.apply(delta, image)
        if change.attributes:
            for listeners in (self.listeners, self._quorum_listeners):
                if listeners is not None:
                    listeners.apply(net_settings(self._settings.current))
        if change.brokers_changed and self._settings.stores is not None:
            await self.renew_stores()
        if self._broker is not None:
            await self._broker.apply(delta, image)
        self._metadata.image = image
        if delta.security.changed_quotas:
            self._apply_quotas(image)
        if self._authorizer is not None:
            self._authorizer.follow(delta.security.changed_acls, image.security.acls)
        self._elections.count(delta, image)
        if delta.features_changed:
            self._metadata.features_offset = image.provenance.offset
        if self._broker is not None:
            self._broker.applied(delta, image)
        if self._registrar is not None:
            self._registrar.metadata_changed(image)

    def _apply_quotas(self, image: MetadataImage) -> None:
        quotas = self._quotas
        quotas.apply(image.security.quotas)
        self.pipeline.throttling.rule = quotas if quotas.limits_clients else None
        for listeners in (self.listeners, self._quorum_listeners):
            if listeners is not None:
                listeners.quotas = quotas if quotas.limits_addresses else None

    @property
    def has_stores(self) -> bool:
        """Whether there are TLS listeners, with stores to renew."""
        return self._settings.stores is not None

    async def reload(self) -> None:
        """Read again what can change while the node runs: the stores of TLS listeners."""
        self.supervision.reloading()
        if self.has_stores:
            await self.renew_stores()
        else:
            logger.info(
                "there are no TLS listeners with certificates to read again. Settings change with `ottla configs alter`"
            )
        self.supervision.ready(self._served)

    async def renew_stores(self) -> None:
        """Read the key stores and trust stores of all TLS listeners again. A failure is logged, and changes nothing."""
        config, stores = self._settings.current, self._settings.stores
        if stores is None:
            return
        try:
            stores.renew(config)
        except InvalidConfig as refused:
            logger.error("the certificates of this node's listeners stay as they are: %s", refused)
            return
        for listeners in (self.listeners, self._quorum_listeners):
            if listeners is not None:
                await listeners.renew_stores(config.listener_security)
        logger.info("new connections use the stores of the TLS listeners as they are now")

    @property
    def _epoch(self) -> int:
        return _NOT_REGISTERED if self._broker is None else self._broker.epoch

    # -- failing

    def _break(self, reason: BaseException) -> None:
        if not self.broken.done():
            self.broken.set_result(
                reason if isinstance(reason, OttlaError) else BrokenInvariant(f"{type(reason).__name__}: {reason}")
            )
            self.supervision.failed(self.broken.result())

    # -- stopping

    async def stop(self) -> None:
        """Shut down cleanly, as far as that is still possible. Stopping twice does nothing."""
        self._is_stopping = True
        self.supervision.stopping()
        await self._stopping.aclose()
        self.supervision.close()
        logger.info("node %d has stopped", self.node_id)

    async def _close_storage(self, storage: Storage) -> None:
        is_trusted = not (self.broken.done() and isinstance(self.broken.result(), BrokenInvariant))
        await storage.close(self._epoch, is_trusted)
