"""Counters of a node's requests and connections since it started, as plain numbers.

Written on the hot path, so nothing is computed here. Read by the metrics page and by tests. One event loop.
"""

from __future__ import annotations

from array import array
from typing import Protocol

RECENT = 1024
"""Requests whose times are kept for quantiles, by API. Kafka's histograms sample as many."""
RECENT_MASK = RECENT - 1


class ApiCounters:
    """The counters of one API."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "errors",
        "hold_noted_s",
        "hold_s_max",
        "recent_s",
        "requests",
        "time_s_max",
        "time_s_total",
    )

    def __init__(self) -> None:
        self.requests = 0
        """Requests that are finished, refused ones included. Parked requests are not counted yet."""
        self.errors = 0
        """Requests that were refused or closed their connection. For the APIs in `refusals.py`, also partly refused."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.time_s_total = 0.0
        """Time from complete request to ready reply; time spent parked is included."""
        self.time_s_max = 0.0
        self.recent_s = array("d")
        """The times of the last `RECENT` requests, in a ring: that of request n is at n modulo `RECENT`."""
        self.hold_s_max = 0.0
        """The longest that one request held the loop in one go; time spent parked is not included."""
        self.hold_noted_s = 0.0
        """Longer holds are noted (`loop_health.py`): the longest so far, at most `NOTED_S`. One comparison per request."""


class ListenerCount(Protocol):
    """The connections of one listener."""

    @property
    def open(self) -> int: ...


class ConnectionCounters:
    """How many connections are open, and why others were closed."""

    __slots__ = (
        "accepted",
        "evicted",
        "faults",
        "idle_closed",
        "listeners",
        "logins_failed",
        "open",
        "refused",
        "sessions_expired",
    )

    def __init__(self) -> None:
        self.open = 0
        self.accepted = 0
        self.listeners: dict[str, ListenerCount] = {}
        """By name, those that have accepted a connection."""
        self.refused = 0
        """Closed at once: their address had too many (max.connections.per.ip)."""
        self.idle_closed = 0
        self.evicted = 0
        """Closed because their large request came in too slowly while others waited for memory."""
        self.faults = 0
        """Closed because the peer broke the protocol."""
        self.logins_failed = 0
        """Logins with SASL that failed, first ones and later ones of a connection."""
        self.sessions_expired = 0
        """Closed because the session was over, and the client had not logged in again."""


class Counters:
    """All network counters of a node."""

    __slots__ = ("apis", "connections")

    def __init__(self) -> None:
        self.apis: dict[int, ApiCounters] = {}
        """By API key; an API that was never requested has no entry."""
        self.connections = ConnectionCounters()

    def of(self, api_key: int) -> ApiCounters:
        found = self.apis.get(api_key)
        if found is None:
            found = self.apis[api_key] = ApiCounters()
        return found
