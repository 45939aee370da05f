"""Limits for connections: in all, on one listener, from one address, and how many new ones per second.

A connection above its address's limit is closed at once. At the other limits new connections wait in the listeners' backlog, as
in Kafka, until others have ended or the rate allows them. Brokers must not wait for clients: if the inter-broker listener is
one of several, it ignores max.connections and max.connection.creation.rate, and a connection of another listener is closed
instead. Decides and counts; touches no stream. One event loop.
"""

from __future__ import annotations

from ottla.broker.net.settings import NO_LIMIT, ListenerLimits, NetSettings
from ottla.broker.requests.quotas import Rate, Windows

NO_LIMITS = ListenerLimits()


class CreationRate:
    """How many connections were made in the last windows. As in Kafka a burst may use all of them, and what is above the limit
    waits for a window at most."""

    __slots__ = ("_rate", "_size_s", "_until_s")

    def __init__(self, windows: Windows) -> None:
        self._rate = Rate(windows)
        self._size_s = windows.size_s
        self._until_s = 0.0

    def count(self, limit: int, now_s: float) -> None:
        if limit != NO_LIMIT:
            self._rate.add(1, now_s)
            self._until_s = now_s + min(self._rate.delay_s(limit, now_s), self._size_s)

    def wait_s(self, limit: int, now_s: float) -> float:
        """How long until another connection may be accepted; not positive: at once."""
        return 0.0 if limit == NO_LIMIT else self._until_s - now_s


class ListenerCount:
    """The connections of one listener."""

    __slots__ = ("is_protected", "name", "open", "rate")

    def __init__(self, name: str, windows: Windows, is_protected: bool = False) -> None:
        self.name = name
        self.is_protected = is_protected
        """Whether it is the inter-broker listener and there are other listeners."""
        self.open = 0
        self.rate = CreationRate(windows)


class ConnectionLimits:
    """The connections of a node in one role, broker or controller. The two are counted separately, as in Kafka."""

    __slots__ = ("_by_host", "_open", "_rate", "settings")

    def __init__(self, settings: NetSettings) -> None:
        self.settings = settings
        self._open = 0
        self._by_host: dict[str, int] = {}
        self._rate = CreationRate(settings.quota_windows)

    def refusal(self, host: str) -> str | None:
        """Why a connection from `host` is refused; None: it is accepted."""
        limit = self.settings.max_connections_per_ip_overrides.get(host, self.settings.max_connections_per_ip)
        if self._by_host.get(host, 0) < limit:
            return None
        return f"there are {limit} connections from {host} already, which is what max.connections.per.ip allows"

    def add(self, listener: ListenerCount, host: str, now_s: float) -> None:
        self._open += 1
        listener.open += 1
        self._by_host[host] = self._by_host.get(host, 0) + 1
        listener.rate.count(self._own(listener).max_connection_creation_rate, now_s)
        if not listener.is_protected:
            self._rate.count(self.settings.max_connection_creation_rate, now_s)

    def remove(self, listener: ListenerCount, host: str) -> None:
        self._open -= 1
        listener.open -= 1
        left = self._by_host[host] - 1
        if left:
            self._by_host[host] = left
        else:
            del self._by_host[host]

    def is_full(self, listener: ListenerCount) -> bool:
        """Whether new connections have to wait until others have ended."""
        if listener.open >= self._own(listener).max_connections:
            return True
        return self._open >= self.settings.max_connections and not listener.is_protected

    @property
    def excess(self) -> int:
        """How many connections there are above max.connections. So many that are not protected have to be closed."""
        return self._open - self.settings.max_connections

    def wait_s(self, listener: ListenerCount, now_s: float) -> float:
        """How long new connections have to wait because of max.connection.creation.rate; not positive: they need not."""
        own_s = listener.rate.wait_s(self._own(listener).max_connection_creation_rate, now_s)
        if listener.is_protected:
            return own_s
        return max(own_s, self._rate.wait_s(self.settings.max_connection_creation_rate, now_s))

    def _own(self, listener: ListenerCount) -> ListenerLimits:
        return self.settings.listener_limits.get(listener.name, NO_LIMITS)
