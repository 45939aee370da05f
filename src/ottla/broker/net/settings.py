"""What the network side of a node is told: a frozen value, swapped whole when a setting changes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

NO_LIMIT = 2_147_483_647


class ListenerLimits(NamedTuple):
    """What `listener.name.NAME.…` says of one listener."""

    max_connections: int = NO_LIMIT
    max_connection_creation_rate: int = NO_LIMIT
    """Per second."""


class NetSettings(NamedTuple):
    """The node's. Names are those of Kafka's settings; what a running node may change is read anew at every use."""

    socket_request_max_bytes: int = 104_857_600
    socket_send_buffer_bytes: int = 102_400
    """-1: what the operating system thinks best; so below."""
    socket_receive_buffer_bytes: int = 102_400
    socket_listen_backlog_size: int = 50
    connections_max_idle_ms: int = 600_000
    """Not positive: never closed for being idle."""
    max_connections: int = NO_LIMIT
    max_connections_per_ip: int = NO_LIMIT
    max_connections_per_ip_overrides: Mapping[str, int] = MappingProxyType({})
    """By address, as text."""
    max_connection_creation_rate: int = NO_LIMIT
    listener_limits: Mapping[str, ListenerLimits] = MappingProxyType({})
    """By the listener's name; those that are not there have none of their own."""
    queued_max_request_bytes: int = -1
    """Requests that are coming in or being worked on, together; not positive: see `net/memory.py`."""
