"""What the network side of a node has counted since it started: plain numbers, for whoever wants to show them.

Written on the hot path, so nothing here is computed; read at leisure by metrics pages and tests. One event loop.
"""

from __future__ import annotations


class ApiCounters:
    """One API's."""

    __slots__ = ("bytes_in", "bytes_out", "errors", "requests", "time_s_max", "time_s_total")

    def __init__(self) -> None:
        self.requests = 0
        """Answered, in whatever way; those that are still being worked on are not among them."""
        self.errors = 0
        """Of them: refused, of the APIs in `broker/refusals.py` also in part, or ended with their connection."""
        self.bytes_in = 0
        self.bytes_out = 0
        self.time_s_total = 0.0
        """From the moment a request was complete until its reply was ready, waiting included."""
        self.time_s_max = 0.0


class ConnectionCounters:
    """Connections: how many there are, and what became of the others."""

    __slots__ = ("accepted", "evicted", "faults", "idle_closed", "open", "refused")

    def __init__(self) -> None:
        self.open = 0
        self.accepted = 0
        self.refused = 0
        """Closed at once: their address had too many."""
        self.idle_closed = 0
        self.evicted = 0
        """Closed because they held memory that others waited for, and did not get on."""
        self.faults = 0
        """Closed because the peer broke the protocol."""


class Counters:
    """All of a node's."""

    __slots__ = ("apis", "connections")

    def __init__(self) -> None:
        self.apis: dict[int, ApiCounters] = {}
        """By API key; those that were never asked for are not there."""
        self.connections = ConnectionCounters()

    def of(self, api_key: int) -> ApiCounters:
        found = self.apis.get(api_key)
        if found is None:
            found = self.apis[api_key] = ApiCounters()
        return found
