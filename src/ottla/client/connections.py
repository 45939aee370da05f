"""`ConnectionPool`: the connections of one client to the nodes of a cluster.

One connection per node and channel. The first request that needs a connection opens it; requests that need it at the same
time wait for the same attempt. After a failed attempt the next waits as `reconnect.backoff.ms` says. Connections without a
request for `connections.max.idle.ms` are closed.

The bootstrap addresses are nodes with negative ids. They are used until the first metadata has come, and again when none of the
known nodes can be reached (`metadata.recovery.strategy=rebootstrap`): a cluster whose brokers have all moved is found again.
Host names are looked up with every attempt, and each attempt after a failed one begins with another address of the host.

Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ottla.client.world import ClientWorld
from ottla.client_core.machine import CONTROLLER, Channel
from ottla.client_core.metadata import Metadata, Node
from ottla.env.backoff import Backoff
from ottla.env.uninterrupted import uninterrupted
from ottla.errors import AuthenticationError, KafkaError, NetworkError, TimeoutError, UnsupportedVersionError
from ottla.link import (
    AuthenticationFailed,
    ConnectFailed,
    EncryptionFailed,
    Link,
    LinkError,
    LinkOptions,
    NoCommonVersion,
    RequestTimedOut,
)
from ottla.wire.base import EncodeError

if TYPE_CHECKING:
    from ottla.client.metrics import ClientMetrics

logger = logging.getLogger("ottla.client")

CANONICAL = "resolve_canonical_bootstrap_servers_only"
BOOTSTRAP_ID = -1000
"""The first bootstrap address is the node with this id, the next the one below, and so on."""
_DOUBLINGS_MAX = 20  # any sensible limit is reached before

Key = tuple[int, Channel]


class ConnectionSettings(Protocol):
    """The settings that connections depend on; every client has them."""

    @property
    def client_dns_lookup(self) -> str: ...
    @property
    def connections_max_idle_ms(self) -> int: ...
    @property
    def reconnect_backoff_ms(self) -> int: ...
    @property
    def reconnect_backoff_max_ms(self) -> int: ...
    @property
    def socket_connection_setup_timeout_ms(self) -> int: ...
    @property
    def socket_connection_setup_timeout_max_ms(self) -> int: ...
    @property
    def metadata_recovery_strategy(self) -> str: ...


class _Place:
    """One node and channel: its connection, or the attempt to open it."""

    __slots__ = ("attempt", "backoff", "is_given_up", "is_lost", "link", "not_before_s", "setup_failures", "used_s", "was_open")

    def __init__(self, settings: ConnectionSettings, world: ClientWorld) -> None:
        below = world.randomness.below
        self.link: Link | None = None
        self.attempt: asyncio.Task[Link] | None = None
        self.backoff = Backoff(settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, below)
        self.setup_failures = 0
        self.is_lost = False
        """Whether the last connection has ended by itself, and no other was opened since."""
        self.is_given_up = False
        """Whether the client rebootstraps: the attempt, which is cancelled, is not waited for any longer."""
        self.was_open = False
        """Whether a connection was made before: the address is right then, and the node is down."""
        self.not_before_s = 0.0
        self.used_s = 0.0


class ConnectionPool:
    """Opens, keeps and closes the connections of a client."""

    def __init__(
        self,
        world: ClientWorld,
        settings: ConnectionSettings,
        bootstrap: Sequence[tuple[str, int]],
        options: LinkOptions,
        metadata: Metadata,
        metrics: ClientMetrics | None = None,
    ) -> None:
        self._world = world
        self._metrics = metrics
        self._settings = settings
        self._bootstrap = [Node(BOOTSTRAP_ID - index, host, port) for index, (host, port) in enumerate(bootstrap)]
        self._options = options
        self._metadata = metadata
        self._places: dict[Key, _Place] = {}
        self._loop = asyncio.get_running_loop()
        self._idle_timer: asyncio.TimerHandle | None = None
        self.is_closed = False

    # Which node

    def node(self, node_id: int) -> Node | None:
        """Where a node is: by the metadata, or as a bootstrap address."""
        if node_id <= BOOTSTRAP_ID:
            return self._bootstrap[BOOTSTRAP_ID - node_id]
        return self._metadata.nodes.get(node_id)

    @property
    def bootstrap_ids(self) -> list[int]:
        """The ids of the bootstrap addresses, in the order given."""
        return [node.id for node in self._bootstrap]

    def controller(self) -> int:
        """The node that the metadata names as controller, or any: brokers of Kafka 4 forward what only it can do."""
        return self._metadata.controller_id if self._metadata.controller_id in self._metadata.nodes else self.any_node()

    def any_node(self) -> int:
        """The node for a request that any can answer: the least loaded open connection, else one worth connecting to.

        A node that fails on one of its connections comes after the others, even if another connection to it is open: it may
        hang, and the request would only come back after request.timeout.ms.
        """
        known = sorted(self._metadata.nodes)
        is_rebootstrap = self._settings.metadata_recovery_strategy == "rebootstrap"
        bootstrap = [node.id for node in self._bootstrap] if is_rebootstrap or not known else []
        suspects = self._suspects()
        opened = [
            (link.in_flight, node_id) for node_id in (*known, *bootstrap) if (link := self.open_link(node_id)) is not None
        ]
        trusted = [each for each in opened if self._address(each[1]) not in suspects]
        if trusted:
            return min(trusted)[1]
        now_s = self._loop.time()
        for group in (known, bootstrap):
            ready = [node_id for node_id in group if self._is_ready(node_id, now_s)]
            fresh = [node_id for node_id in ready if self._address(node_id) not in suspects]
            if fresh or (ready and not opened):
                chosen = fresh or ready
                return chosen[self._world.randomness.below(len(chosen))]
        if opened:
            return min(opened)[1]
        return min((*known, *bootstrap), key=self._ready_at_s)

    def _suspects(self) -> set[tuple[str, int] | None]:
        """Addresses (a broker may have a bootstrap id too) of nodes with a connection that has ended or cannot be opened."""
        return {
            self._address(node_id)
            for (node_id, _), place in self._places.items()
            if place.setup_failures or place.is_lost or (place.link is not None and place.link.is_over)
        }

    def _trust(self, node_id: int) -> None:
        """The node answers: what failed on its other connections is past."""
        for (other_id, _), place in self._places.items():
            if other_id == node_id:
                place.setup_failures = 0
                place.is_lost = False
                if place.link is not None and place.link.is_over:
                    place.link = None

    def _address(self, node_id: int) -> tuple[str, int] | None:
        node = self.node(node_id)
        return None if node is None else (node.host, node.port)

    def _is_ready(self, node_id: int, now_s: float) -> bool:
        place = self._places.get((node_id, Channel.DATA))
        return place is None or (place.attempt is None and place.not_before_s <= now_s)

    def _ready_at_s(self, node_id: int) -> float:
        place = self._places.get((node_id, Channel.DATA))
        return 0.0 if place is None else place.not_before_s

    # Connections

    def resolve(self, node_id: int) -> int:
        """The id of a node for a request to `ANY_NODE` or `CONTROLLER`; others stay as they are."""
        if node_id == CONTROLLER:
            return self.controller()
        return self.any_node() if -BOOTSTRAP_ID > -node_id > 0 else node_id

    def open_link(self, node_id: int, channel: Channel = Channel.DATA) -> Link | None:
        """The open connection, if there is one."""
        place = self._places.get((node_id, channel))
        if place is None or place.link is None:
            return None
        if place.link.is_over:
            place.link = None
            place.is_lost = True  # still suspect while it is connected to again
            return None
        place.used_s = self._loop.time()
        return place.link

    def is_open(self, node_id: int, channel: Channel = Channel.DATA) -> bool:
        """Whether a request to a node leaves at once. Does not count as a use of the connection."""
        place = self._places.get((node_id, channel))
        return place is not None and place.link is not None and not place.link.is_over

    def bootstrap_link(self, node_id: int, channel: Channel = Channel.DATA) -> Link | None:
        """The open connection to a bootstrap address that is also the address of this node, if there is one."""
        node = self.node(node_id)
        same = [each.id for each in self._bootstrap if node is not None and each[1:3] == node[1:3]]
        return next((link for each in same if (link := self.open_link(each, channel)) is not None), None)

    async def link(self, node_id: int, channel: Channel = Channel.DATA) -> Link:
        """The connection, opened if need be. Raises `LinkError`."""
        link = self.open_link(node_id, channel)
        if link is not None:
            return link
        if self.is_closed:
            raise ConnectFailed(f"node {node_id}", "the client is closed")
        place = self._places.get((node_id, channel))
        if place is None:
            place = self._places[node_id, channel] = _Place(self._settings, self._world)
        if place.attempt is None:
            place.attempt = asyncio.create_task(self._connect(place, node_id), name=f"connect to node {node_id}")
            place.attempt.add_done_callback(_mark_retrieved)
        attempt = place.attempt
        try:
            return await uninterrupted(attempt)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not place.is_given_up or (task is not None and task.cancelling()):
                raise
            text = "the client starts again from its bootstrap servers"
            raise ConnectFailed(f"node {node_id}", f"node {node_id} is no longer connected to: {text}") from None

    async def _connect(self, place: _Place, node_id: int) -> Link:
        try:
            wait_s = place.not_before_s - self._loop.time()
            if wait_s > 0:
                await asyncio.sleep(wait_s)
            node = self.node(node_id)
            if node is None:
                raise ConnectFailed(f"node {node_id}", f"node {node_id} is not in the cluster's metadata")
            link = await self._open(node, place.setup_failures)
        except LinkError as error:
            if isinstance(error, AuthenticationFailed | EncryptionFailed):
                self._authenticated(False)
            place.not_before_s = self._loop.time() + place.backoff.failed() / 1000
            place.setup_failures += 1
            self._metadata.refresh(f"node {node_id} cannot be reached")
            raise (error if place.was_open else self._explained(node_id, error)) from None
        else:
            place.backoff.succeeded()
            self._trust(node_id)
            place.link = link
            place.was_open = True
            place.used_s = self._loop.time()
            self._metadata.learn_features(link.versions.features_epoch, link.versions.features)
            self._watch_idle()
            security = self._options.security
            if security.tls is not None or security.sasl is not None:
                self._authenticated(True)
            return link
        finally:
            place.attempt = None

    async def _open(self, node: Node, failures: int) -> Link:
        """A new connection, after some failures in a row to make one. Raises the `LinkError` of the last host name tried."""
        # The setup timeout doubles with every failure in a row (KIP-601): a slow network may need more.
        options = replace(
            self._options,
            connect_timeout_ms=_setup_timeout_ms(failures, self._settings),
            socket=self._options.socket._replace(first_address=failures),
            may_need_login=not self._metadata.nodes,  # a broker has named them: none of its listeners wants a login
        )
        counters = None if self._metrics is None else self._metrics.counters(_shown_id(node.id))
        network, randomness = self._world.network, self._world.randomness
        *hosts, last = await self._hosts(node, options.connect_timeout_ms / 1000)
        for host in hosts:
            try:
                return await Link.connect(network, host, node.port, options, randomness, counters)
            except ConnectFailed as failure:
                logger.debug("%s; the next host name of %s is tried", failure, node.host)
        return await Link.connect(network, last, node.port, options, randomness, counters)

    async def _hosts(self, node: Node, timeout_s: float) -> list[str]:
        """The host names to try, at least one: a bootstrap server's canonical ones if `client.dns.lookup` says so."""
        if node.id <= BOOTSTRAP_ID and self._settings.client_dns_lookup == CANONICAL:
            try:
                async with asyncio.timeout(timeout_s):
                    return await self._world.network.canonical_names(node.host) or [node.host]
            except OSError:
                pass  # connecting says what is wrong with the name
        return [node.host]

    def _authenticated(self, is_successful: bool) -> None:
        if self._metrics is not None:
            self._metrics.connections.authenticated(is_successful, self._metrics.now_ms())

    @property
    def in_flight(self) -> int:
        """How many requests wait for their answers. May be asked from any thread."""
        links = [place.link for place in list(self._places.values())]
        return sum(link.in_flight for link in links if link is not None)

    def _explained(self, node_id: int, error: LinkError) -> LinkError:
        """An address that the cluster gave, not the user: the reader needs to know where it is set."""
        if node_id <= BOOTSTRAP_ID or not isinstance(error, ConnectFailed) or error.address == f"node {node_id}":
            return error  # the last: it has no address, because it is not in the metadata
        if error.is_refused:
            text = f"broker {node_id} at {error.address} does not answer: start it, or check its advertised.listeners"
            return ConnectFailed(error.address, text, error.is_retriable)
        text = f"broker {node_id} tells its clients to connect to {error.address} (its advertised.listeners), but {error}"
        return ConnectFailed(error.address, text, error.is_retriable)

    # Closing

    def rebootstrap(self, reason: str) -> None:
        """Close all connections and end all attempts: the metadata has forgotten its nodes. Requests under way fail."""
        addresses = ", ".join(f"{node.host}:{node.port}" for node in self._bootstrap)
        logger.warning("%s: starting again from %s", reason, addresses)
        places, self._places = self._places, {}
        for place in places.values():
            place.is_given_up = True
            if place.attempt is not None:
                place.attempt.cancel()
            if place.link is not None:
                place.link.close()

    def _watch_idle(self) -> None:
        limit_s = self._settings.connections_max_idle_ms / 1000
        if self._idle_timer is None and limit_s >= 0 and not self.is_closed:
            self._idle_timer = self._loop.call_later(limit_s, self._close_idle, limit_s)

    def _close_idle(self, limit_s: float) -> None:
        self._idle_timer = None
        now_s = self._loop.time()
        open_left = False
        for place in self._places.values():
            if place.link is None or place.link.is_over:
                continue
            if place.link.in_flight == 0 and now_s - place.used_s >= limit_s:
                place.link.close()
                place.link = None
            else:
                open_left = True
        if open_left:
            self._watch_idle()

    def close(self) -> None:
        """Close all connections. Requests that wait for answers fail."""
        self.is_closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        for place in self._places.values():
            if place.attempt is not None:
                place.attempt.cancel()
            if place.link is not None:
                place.link.close()


def _setup_timeout_ms(failures: int, settings: ConnectionSettings) -> int:
    first_ms, max_ms = settings.socket_connection_setup_timeout_ms, settings.socket_connection_setup_timeout_max_ms
    return min(first_ms << min(failures, _DOUBLINGS_MAX), max(first_ms, max_ms))


def _shown_id(node_id: int) -> int:
    """The id in metrics: Kafka numbers its bootstrap addresses -1, -2 and so on."""
    return node_id if node_id > BOOTSTRAP_ID else node_id - BOOTSTRAP_ID - 1


def _mark_retrieved(attempt: asyncio.Task[Link]) -> None:
    """The loop must not log a failure that no request waits for any more."""
    if not attempt.cancelled():
        attempt.exception()


# Turns failures of connections into the errors that machines and users see.


def kafka_error(failure: LinkError | EncodeError) -> KafkaError:
    """The `KafkaError` for a request that got no answer."""
    if isinstance(failure, NoCommonVersion | EncodeError):
        return UnsupportedVersionError(str(failure))
    if isinstance(failure, RequestTimedOut):
        return TimeoutError(str(failure))
    if isinstance(failure, AuthenticationFailed):
        return AuthenticationError(str(failure))
    return NetworkError(str(failure), is_unsent=isinstance(failure, ConnectFailed))
