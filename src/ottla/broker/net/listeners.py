"""The listeners of a node and their connections: opens, limits and scans them, and closes them at a clean shutdown.

A scan closes idle connections, `SCANS_PER_IDLE_TIME` times in connections.max.idle.ms. While a connection waits for request
memory, the scan runs every second and closes slow senders. No connection has a timer of its own, and a node without connections
has no timer at all. One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from ottla.broker.authentication.listener_logins import ListenerLogins
from ottla.broker.net.connection import Connection
from ottla.broker.net.limits import ConnectionLimits, ListenerCount
from ottla.broker.net.settings import NetSettings
from ottla.broker.net.tls_connection import TlsConnection
from ottla.broker.requests.audit_log import audit_levels
from ottla.broker.requests.context import ConnectionInfo
from ottla.broker.requests.login import Login
from ottla.broker.requests.memory import FreedMemory
from ottla.broker.requests.pipeline import RequestPipeline
from ottla.broker.requests.quotas import ClientQuotas
from ottla.broker.requests.request_log import request_log
from ottla.broker.security import tls_options
from ottla.config.broker_security import UNSECURED, ListenerSecurity, with_stores_of
from ottla.config.listeners import Listener as ListenerSetting
from ottla.config.values import InvalidConfig
from ottla.env import Listener, SocketOptions, Stream, StreamOwner, TlsFailed, World
from ottla.wire.framing import READ_AHEAD_BYTES

logger = logging.getLogger("ottla.net")

SHORT_OF_MEMORY_SCAN_S = 1.0
SCANS_PER_IDLE_TIME = 16
"""An idle connection is closed at most two sixteenths of connections.max.idle.ms too late."""
GRACE_S = 2.0
CONNECTION_BYTES, TLS_CONNECTION_BYTES = 8 << 10, 48 << 10
"""What an idle connection has taken, about."""
DEFAULT_BUFFER_BYTES = 102_400
DEFAULT_BACKLOG = 50
TURNED_AWAY_MAX = 1000
"""So many connections above their address's quota wait for their end; others end at once."""
BACKLOG_MAX = 4096
"""The kernel lowers it to what it allows (somaxconn)."""


def socket_options(settings: NetSettings) -> SocketOptions:
    """The socket options for `settings`. Kafka's defaults become the kernel's defaults; any other number is used as it is.

    Every `server.properties` contains Kafka's defaults, and they are small. A receive buffer of a fixed 100 KB costs the broker
    twice the CPU per byte, because it is filled and emptied more often; the kernel's default adapts to each connection. If a
    thousand clients connect at once, those beyond a backlog of 50 have to try again a second later.
    """
    return SocketOptions(
        -1 if settings.socket_send_buffer_bytes == DEFAULT_BUFFER_BYTES else settings.socket_send_buffer_bytes,
        -1 if settings.socket_receive_buffer_bytes == DEFAULT_BUFFER_BYTES else settings.socket_receive_buffer_bytes,
        BACKLOG_MAX if settings.socket_listen_backlog_size == DEFAULT_BACKLOG else settings.socket_listen_backlog_size,
    )


class OpenListener:
    """One open listener: its handle, its connection count and its limits."""

    __slots__ = ("count", "handle", "is_controller", "is_paused", "limits", "logins", "security")

    def __init__(
        self, name: str, is_controller: bool, is_protected: bool, limits: ConnectionLimits, security: ListenerSecurity
    ) -> None:
        self.count = ListenerCount(name, limits.settings.quota_windows, is_protected)
        self.security = security
        self.logins: ListenerLogins | None = None
        """None: it has no SASL."""
        self.is_controller = is_controller
        self.limits = limits
        self.handle: Listener
        self.is_paused = False


class TurnedAway:
    """`StreamOwner` of a connection that is not served: it is closed after a while."""

    __slots__ = ("_among", "_stream", "_timer")

    def __init__(self, stream: Stream, among: dict[TurnedAway, None], delay_s: float) -> None:
        self._stream = stream
        self._among = among
        self._timer = asyncio.get_running_loop().call_later(delay_s, self.close)

    def close(self) -> None:
        self._stream.close()

    def buffer(self) -> memoryview:
        return memoryview(bytearray(1))

    def received(self, count: int) -> None:
        self.close()

    def drained(self) -> None:
        """Nothing is sent."""

    def ended(self, error: OSError | None) -> None:
        self._timer.cancel()
        self._among.pop(self, None)


class Listeners:
    """A node's listeners: `open` binds the ports, `serve` begins to accept, `close` answers open requests, `abort` does not."""

    def __init__(
        self,
        world: World,
        settings: NetSettings,
        pipeline: RequestPipeline,
        logins_of: Callable[[ListenerSecurity], ListenerLogins | None] = lambda _: None,
    ) -> None:
        """`logins_of` returns the logins of a listener; None if it has no SASL."""
        self._logins_of = logins_of
        self._network = world.network
        self._settings = settings
        self.pipeline = pipeline
        self._counters = pipeline.counters.connections
        self._limits = {False: ConnectionLimits(settings), True: ConnectionLimits(settings)}  # by is_controller
        self._read_ahead = bytearray(READ_AHEAD_BYTES)
        self._listeners: list[OpenListener] = []
        self._connections: dict[Connection, OpenListener] = {}
        self._next_id = 0
        self._is_serving = False
        self._scan_timer: asyncio.TimerHandle | None = None
        self._rate_timer: asyncio.TimerHandle | None = None
        self._gone: asyncio.Event | None = None
        self.quotas: ClientQuotas | None = None
        """Limits the rate of new connections of an address; None: no limit is set."""
        self._turned_away: dict[TurnedAway, None] = {}
        self.is_refusing = False
        """Set by tests: client connections are closed as soon as they are accepted."""
        self.on_refused: Callable[[], None] | None = None
        self.memory = pipeline.scheduler.memory.limit_frames(
            settings.queued_max_request_bytes, settings.socket_request_max_bytes, self._scan_soon
        )
        self._freed = self.memory.freed = FreedMemory(world.compute, world.return_memory)

    @property
    def connections(self) -> list[Connection]:
        """The open connections."""
        return list(self._connections)

    async def open(
        self, listeners: Sequence[ListenerSetting], controller_names: Collection[str] = (), inter_broker_name: str = ""
    ) -> dict[str, tuple[str, int]]:
        """Bind the ports of all `listeners`; return each one's address, with the real port, by name. Nothing is accepted yet.

        Raises `AddressRefused` if one cannot be bound, `InvalidConfig` if its TLS cannot be used; then none is.
        """
        options = socket_options(self._settings)
        is_one_of_several = sum(setting.name not in controller_names for setting in listeners) > 1
        try:
            for setting in listeners:
                is_protected = is_one_of_several and setting.name == inter_broker_name
                await self._open(setting, setting.name in controller_names, is_protected, options)
        except BaseException:
            self.abort()
            raise
        return {each.count.name: each.handle.address for each in self._listeners}

    async def _open(self, setting: ListenerSetting, is_controller: bool, is_protected: bool, options: SocketOptions) -> None:
        security = self._settings.listener_security.get(setting.name, UNSECURED)
        listener = OpenListener(setting.name, is_controller, is_protected, self._limits[is_controller], security)
        listener.logins = self._logins_of(security)
        assert (listener.logins is not None) == security.uses_sasl, "without logins, SASL would let everybody in"

        def accept(stream: Stream) -> StreamOwner | None:
            return self._accept(listener, stream)

        try:
            tls = tls_options(security)
            listener.handle = await self._network.listen(setting.host, setting.port, accept, options, tls)
        except TlsFailed as failed:
            raise InvalidConfig(failed.setting or "listeners", f"listener {setting.name}: {failed}") from None
        listener.handle.pause()
        listener.is_paused = True
        self._listeners.append(listener)

    def serve(self) -> None:
        """Accept connections, including those that wait in the backlog."""
        self._is_serving = True
        self._admit()

    def apply(self, settings: NetSettings) -> None:
        """Apply changed settings: limits at once, sizes of sockets and requests to new listeners and connections."""
        self._settings = settings
        for limits in self._limits.values():
            limits.settings = settings
            self._close_excess(limits)
        self._admit()
        self._schedule_scan()

    async def renew_stores(self, security: Mapping[str, ListenerSecurity]) -> None:
        """Read the stores of all TLS listeners again, for connections accepted from now on. `security` names them."""
        for listener in list(self._listeners):
            if not listener.security.uses_tls:
                continue
            renewed = with_stores_of(listener.security, security[listener.count.name])
            options = tls_options(renewed)
            assert options is not None
            try:
                await listener.handle.renew_tls(options)
            except TlsFailed as failed:
                logger.error("listener %s keeps its certificate, because it cannot be renewed: %s", listener.count.name, failed)
                continue
            listener.security = renewed

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Accept nothing more, answer the requests received so far, close. Connections left after `grace_s` are aborted."""
        self._stop_accepting()
        if not self._connections:
            return
        self._gone = asyncio.Event()
        for connection in self.connections:
            connection.leave()
        try:
            async with asyncio.timeout(grace_s):
                await self._gone.wait()
        except TimeoutError:
            self.abort()
            await self._gone.wait()

    def abort(self) -> None:
        """Close all connections without answering. Aborting twice, or after `close`, does nothing."""
        self._stop_accepting()
        for connection in self.connections:
            connection.stream.close()
        for turned_away in list(self._turned_away):
            turned_away.close()

    def _stop_accepting(self) -> None:
        self._is_serving = False
        self._freed.close()
        for timer in (self._scan_timer, self._rate_timer):
            if timer is not None:
                timer.cancel()
        for listener in self._listeners:
            listener.handle.close()
        self._listeners.clear()

    # Accepting and ending connections

    def _accept(self, listener: OpenListener, stream: Stream) -> StreamOwner | None:
        if self.is_refusing and not listener.is_controller:
            if self.on_refused is not None:
                self.on_refused()
            return None
        host = stream.peer[0]
        refusal = listener.limits.refusal(host)
        if refusal is not None:
            self._counters.refused += 1
            self.pipeline.fault_log.report(
                logging.WARNING, host, "refusing a connection on %s: %s", listener.count.name, refusal
            )
            return None
        request_log.refresh()
        audit_levels.refresh()
        now_s = asyncio.get_running_loop().time()
        if self.quotas is not None and (delay_s := self.quotas.connection_delay_s(host, now_s)) > 0:
            return self._turn_away(stream, delay_s)
        listener.limits.add(listener.count, host, now_s)
        self._counters.accepted += 1
        self._counters.listeners[listener.count.name] = listener.count
        self._counters.open += 1
        self._next_id += 1
        info = ConnectionInfo(
            self._next_id, listener.count.name, stream.peer, listener.is_controller, security=listener.security
        )
        if listener.logins is not None:
            info.login = Login(listener.logins)
        connection = (TlsConnection if listener.security.uses_tls else Connection)(
            stream,
            info,
            self.pipeline,
            self.memory,
            self._settings.socket_request_max_bytes,
            self._read_ahead,
            self._connection_ended,
        )
        connection.last_active_s = now_s
        self._connections[connection] = listener
        self._close_excess(listener.limits)
        self._admit()
        if self._scan_timer is None:
            self._schedule_scan()
        return connection

    def _turn_away(self, stream: Stream, delay_s: float) -> TurnedAway | None:
        """End a connection above its address's quota; as in Kafka after some time, else its client would try again at once."""
        self._counters.refused += 1
        if len(self._turned_away) >= TURNED_AWAY_MAX:
            return None
        turned_away = TurnedAway(stream, self._turned_away, delay_s)
        self._turned_away[turned_away] = None
        return turned_away

    def _close_excess(self, limits: ConnectionLimits) -> None:
        """Close the connections that were idle longest, if brokers connected above max.connections or it was lowered."""
        if limits.excess <= 0:
            return
        closing = sum(each.is_making_room for each, listener in self._connections.items() if listener.limits is limits)
        others = [
            each
            for each, listener in self._connections.items()
            if listener.limits is limits and not listener.count.is_protected and not each.is_making_room
        ]
        others.sort(key=lambda each: (each.is_active, each.last_active_s))
        for connection in others[: max(0, limits.excess - closing)]:
            connection.is_making_room = True
            logger.info(
                "closing the connection of %s:%d on %s: there are more than max.connections, and it was silent for longest",
                *connection.info.peer,
                connection.info.listener,
            )
            connection.stream.close()

    def _connection_ended(self, connection: Connection) -> None:
        listener = self._connections.pop(connection)
        listener.limits.remove(listener.count, connection.info.peer[0])
        self._freed.note(TLS_CONNECTION_BYTES if listener.security.uses_tls else CONNECTION_BYTES)
        self._counters.open -= 1
        if self._is_serving:
            self._admit()
        elif self._gone is not None and not self._connections:
            self._gone.set()

    def _admit(self) -> None:
        """Pause or resume every listener, as the limits require now."""
        now_s = asyncio.get_running_loop().time()
        waits_s: list[float] = []
        for listener in self._listeners:
            own_wait_s = listener.limits.wait_s(listener.count, now_s)
            if own_wait_s > 0:
                waits_s.append(own_wait_s)
            should_pause = not self._is_serving or own_wait_s > 0 or listener.limits.is_full(listener.count)
            if should_pause and not listener.is_paused:
                listener.handle.pause()
            elif listener.is_paused and not should_pause:
                listener.handle.resume()
            listener.is_paused = should_pause
        if waits_s and self._rate_timer is None:
            self._rate_timer = asyncio.get_running_loop().call_later(min(waits_s), self._rate_waited)

    def _rate_waited(self) -> None:
        self._rate_timer = None
        self._admit()

    # Idle connections

    def _schedule_scan(self) -> None:
        """Set the timer for the next scan; no timer if there is nothing to scan for."""
        if self._scan_timer is not None:
            self._scan_timer.cancel()
            self._scan_timer = None
        if not self._connections or not self._is_serving:
            return
        periods_s = [SHORT_OF_MEMORY_SCAN_S] if self.memory.is_short else []
        if self._settings.connections_max_idle_ms > 0:
            periods_s.append(self._settings.connections_max_idle_ms / 1000 / SCANS_PER_IDLE_TIME)
        if periods_s:
            self._scan_timer = asyncio.get_running_loop().call_later(min(periods_s), self._scan)

    def _scan_soon(self) -> None:
        """A connection begins to wait for memory: scan within `SHORT_OF_MEMORY_SCAN_S`.

        A timer that ends sooner stays. Under load memory comes back many times a second, and those that get none
        begin to wait again each time.
        """
        timer = self._scan_timer
        if timer is None or timer.when() > asyncio.get_running_loop().time() + SHORT_OF_MEMORY_SCAN_S:
            self._schedule_scan()

    def _scan(self) -> None:
        self._scan_timer = None
        now_s = asyncio.get_running_loop().time()
        idle_s_max = self._settings.connections_max_idle_ms / 1000
        for connection in self.connections:
            unsent_bytes = connection.stream.unsent_bytes
            if connection.is_active or unsent_bytes != connection.unsent_bytes_seen:
                connection.is_active = False
                connection.unsent_bytes_seen = unsent_bytes
                connection.last_active_s = now_s
            elif 0 < idle_s_max < now_s - connection.last_active_s:
                self._counters.idle_closed += 1
                logger.info(
                    "closing the connection of %s:%d on %s: nothing came or went for %.0f s (connections.max.idle.ms)",
                    *connection.info.peer,
                    connection.info.listener,
                    now_s - connection.last_active_s,
                )
                connection.stream.close()
        self.memory.evict_slow(now_s)
        self._schedule_scan()
