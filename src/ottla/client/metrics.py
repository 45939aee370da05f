"""`ClientMetrics`: the metrics of one client: what its connections count, the ways to read them, and pushes to the cluster.

`ConnectionMetrics` is what the connections record, for all of them and for each node. `MeasuredCounters` takes the place of a
link's counters, so that a request is measured once, where it is sent. Everything here belongs to the client's event loop,
except `as_dict` and `prometheus_text`, which work from any thread.
"""

from __future__ import annotations

import asyncio
from builtins import TimeoutError as TimeIsUp
from functools import cached_property
from typing import TYPE_CHECKING

from ottla.client.world import ClientWorld
from ottla.client_core.metrics.registry import ClientKind, MetricsRegistry, SensorSet
from ottla.client_core.metrics.sensor import Sensor
from ottla.client_core.metrics.table import connection_table, node_table
from ottla.config.client.settings import ClientSettings
from ottla.errors import IllegalStateError, TimeoutError, UnsupportedVersionError
from ottla.ids import Uuid
from ottla.link.counters import LinkCounters

if TYPE_CHECKING:
    from ottla.client.runtime import ClientRuntime
    from ottla.client_core.telemetry import Telemetry

LAST_PUSH_S = 1.0
"""How long `close` waits for the answer to the last push."""


class ClientMetrics:
    """The registry of one client, its connections' part of it, and its telemetry."""

    def __init__(self, kind: ClientKind, settings: ClientSettings, world: ClientWorld) -> None:
        clock = world.clock
        self._clock = clock
        self._started_ms = clock.now_ms()
        self._settings = settings
        self._random_below = world.randomness.below
        self.registry = MetricsRegistry(kind, settings.client_id or f"ottla-{kind.removesuffix('-client')}", settings)
        self.connections = ConnectionMetrics(self.registry)
        self.resource: dict[str, str] = {}
        """What telemetry says of this client beside its metrics, such as its group; changed in place."""
        self.api_latencies: dict[int, Sensor] = {}
        """Sensors for the latency of single APIs, by API key."""
        self._is_pushing = False
        self._is_wanted = settings.enable_metrics_push
        self._closed: asyncio.Future[None] | None = None
        self._changed: list[asyncio.Future[None]] = []
        """Those who wait for the client instance id."""

    @cached_property
    def telemetry(self) -> Telemetry:
        """The machine that pushes metrics to the cluster; made when a node has answered."""
        from ottla.client_core.telemetry import Telemetry  # late: importing a client is sooner done without

        started_ms, resource = self._started_ms, self.resource
        return Telemetry(
            self._settings, self.registry, self._random_below, self._clock.now_ms, started_ms=started_ms, resource=resource
        )

    def now_ms(self) -> int:
        """The monotonic time that metrics count in."""
        return int(self._clock.monotonic_s() * 1000)

    def now_ns(self) -> int:
        """The same time, for calls that take less than a millisecond."""
        return int(self._clock.monotonic_s() * 1_000_000_000)

    # Reading

    def as_dict(self) -> dict[str, dict[str, float]]:
        """All values by group and name."""
        return self.registry.as_dict(self.now_ms())

    def prometheus_text(self) -> str:
        """All values in Prometheus's text format."""
        return self.registry.prometheus_text(self.now_ms())

    # Connections

    def counters(self, node_id: int) -> MeasuredCounters:
        """The counters for a new connection to a node."""
        return MeasuredCounters(self, node_id)

    # Telemetry

    def after_round(self, runner: ClientRuntime, is_connected: bool) -> None:
        """After a round of the client's machines. Pushes begin once a node has answered, over its connection."""
        if is_connected and self._is_wanted and not self._is_pushing:
            self._is_pushing = True
            runner.add(self.telemetry)
        if self._closed is not None and self.telemetry.is_closed and not self._closed.done():
            self._closed.set_result(None)
        self._tell_changed()

    async def client_instance_id(self, runner: ClientRuntime, timeout_s: float) -> Uuid:
        """The id that the cluster gives this client for its metrics. Raises `TimeoutError` if none comes in time."""
        if not self._is_wanted:
            raise IllegalStateError(
                "there is no client instance id without metrics for the cluster: set enable.metrics.push=true"
            )
        if timeout_s < 0:
            raise ValueError(f"timeout is {timeout_s!r}, but must not be negative")
        if not self._is_pushing:
            self._is_pushing = True
            runner.add(self.telemetry)
        telemetry = self.telemetry
        try:
            async with asyncio.timeout(timeout_s):
                while telemetry.client_instance_id is None:
                    if telemetry.is_closing:
                        raise IllegalStateError("the client was closed before the cluster gave it an instance id")
                    if telemetry.refusal is not None or isinstance(telemetry.failure, UnsupportedVersionError):
                        why = telemetry.refusal or "no broker takes client metrics (it needs a metrics reporter that does)"
                        raise UnsupportedVersionError(f"the cluster gives this client no instance id: {why}")
                    self._changed.append(asyncio.get_running_loop().create_future())
                    await self._changed[-1]
        except TimeIsUp:
            why = "no broker has answered yet" if telemetry.failure is None else str(telemetry.failure)
            raise TimeoutError(
                f"the cluster gave this client no instance id within {timeout_s:g} s: {why}. It goes on asking: call again"
            ) from telemetry.failure
        return telemetry.client_instance_id

    def _tell_changed(self) -> None:
        changed, self._changed = self._changed, []
        for future in changed:
            if not future.done():
                future.set_result(None)

    async def close(self, runner: ClientRuntime, timeout_s: float | None = None) -> None:
        """Push once more, if the cluster wants metrics. Waits up to `timeout_s`, and never longer than a second."""
        self._is_wanted = False
        if not self._is_pushing:
            return
        self.telemetry.close()
        self._tell_changed()
        if self.telemetry.is_closed:
            return
        self._closed = asyncio.get_running_loop().create_future()
        runner.wake()
        try:
            async with asyncio.timeout(LAST_PUSH_S if timeout_s is None else min(timeout_s, LAST_PUSH_S)):
                await self._closed
        except TimeIsUp:
            pass  # metrics are not worth more of the caller's time


class MeasuredCounters(LinkCounters):
    """The counters of one link, which record for the client's metrics too."""

    __slots__ = ("_metrics", "_node_id", "_unrecorded_bytes")

    def __init__(self, metrics: ClientMetrics, node_id: int) -> None:
        super().__init__()
        self._metrics = metrics
        self._node_id = node_id
        self._unrecorded_bytes = 0
        """Bytes received since the last answer."""

    def sent(self, size_bytes: int) -> None:
        super().sent(size_bytes)
        metrics = self._metrics
        metrics.connections.request_sent(self._node_id, size_bytes, metrics.now_ms())

    def received(self, size_bytes: int) -> None:
        super().received(size_bytes)
        self._unrecorded_bytes += size_bytes

    def answered(self, latency_s: float, api_key: int) -> None:
        super().answered(latency_s, api_key)
        metrics, now_ms, latency_ms = self._metrics, self._metrics.now_ms(), round(latency_s * 1000)
        metrics.connections.answered(self._node_id, self._unrecorded_bytes, latency_ms, now_ms)
        self._unrecorded_bytes = 0
        sensor = metrics.api_latencies.get(api_key)
        if sensor is not None:
            sensor.record(latency_ms, now_ms)

    def logged_in_again(self, latency_s: float | None) -> None:
        latency_ms = None if latency_s is None else round(latency_s * 1000)
        self._metrics.connections.reauthenticated(latency_ms, self._metrics.now_ms())

    def opened(self) -> None:
        self._metrics.connections.opened(self._metrics.now_ms())

    def ended(self) -> None:
        self._metrics.connections.closed(self._metrics.now_ms())


class ConnectionMetrics:
    """Records for `producer-metrics` and `producer-node-metrics`, or those of the client's kind, on the client's loop."""

    def __init__(self, registry: MetricsRegistry) -> None:
        self._registry = registry
        self._all = registry.add(connection_table(registry.kind))
        self._nodes: dict[int, SensorSet] = {}
        self._open = 0
        self._all.gauge("connection-count", lambda: self._open)

    def opened(self, now_ms: int) -> None:
        """A connection is ready for requests."""
        self._open += 1
        self._all["opened"].record(1, now_ms)

    def closed(self, now_ms: int) -> None:
        """A connection that was `opened` has ended, for any reason."""
        self._open -= 1
        self._all["closed"].record(1, now_ms)

    def authenticated(self, is_successful: bool, now_ms: int) -> None:
        """A SASL or TLS authentication has ended."""
        self._all["authenticated" if is_successful else "refused"].record(1, now_ms)

    def reauthenticated(self, latency_ms: int | None, now_ms: int) -> None:
        """A login on an open connection has ended; None: it failed."""
        if latency_ms is None:
            self._all["not_reauthenticated"].record(1, now_ms)
        else:
            self._all["reauthenticated"].record(latency_ms, now_ms)

    def request_sent(self, node_id: int, size_bytes: int, now_ms: int) -> None:
        """A request leaves; `size_bytes` with its header and length."""
        self._node(node_id)["outgoing"].record(size_bytes, now_ms)
        self._all["outgoing"].record(size_bytes, now_ms)
        self._all["network"].record(1, now_ms)

    def answered(self, node_id: int, size_bytes: int, latency_ms: int, now_ms: int) -> None:
        """An answer has come, `latency_ms` after its request was sent."""
        node = self._node(node_id)
        node["incoming"].record(size_bytes, now_ms)
        node["latency"].record(latency_ms, now_ms)
        self._all["incoming"].record(size_bytes, now_ms)
        self._all["network"].record(1, now_ms)

    def _node(self, node_id: int) -> SensorSet:
        sensors = self._nodes.get(node_id)
        if sensors is None:
            sensors = self._nodes[node_id] = self._registry.add(node_table(self._registry.kind), f"node-{node_id}")
        return sensors
