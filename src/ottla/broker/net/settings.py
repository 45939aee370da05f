"""The settings of a node's network side: a frozen value, replaced as a whole when a setting changes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ottla.broker.requests.quotas import Windows
from ottla.config.broker_security import ListenerSecurity

NO_LIMIT = 2_147_483_647


class ListenerLimits(NamedTuple):
    """The limits of one listener, from `listener.name.NAME.…`."""

    max_connections: int = NO_LIMIT
    max_connection_creation_rate: int = NO_LIMIT
    """Per second."""


class NetSettings(NamedTuple):
    """Network settings of a node, named as in Kafka. Settings that may change while the node runs are read at every use."""

    socket_request_max_bytes: int = 104_857_600
    socket_send_buffer_bytes: int = 102_400
    """-1: the operating system's default. The same holds for `socket_receive_buffer_bytes`."""
    socket_receive_buffer_bytes: int = 102_400
    socket_listen_backlog_size: int = 50
    connections_max_idle_ms: int = 600_000
    """Not positive: never closed for being idle."""
    max_connections: int = NO_LIMIT
    max_connections_per_ip: int = NO_LIMIT
    max_connections_per_ip_overrides: Mapping[str, int] = MappingProxyType({})
    """By address, as text."""
    max_connection_creation_rate: int = NO_LIMIT
    quota_windows: Windows = Windows()
    """Over which the rates of new connections are measured."""
    listener_limits: Mapping[str, ListenerLimits] = MappingProxyType({})
    """By the listener's name; a listener without an entry has no limits of its own."""
    listener_security: Mapping[str, ListenerSecurity] = MappingProxyType({})
    """By the listener's name; a listener without an entry has neither TLS nor SASL."""
    queued_max_request_bytes: int = -1
    """Memory for requests that are coming in or being handled. Not positive: the default in `requests/memory.py`."""
