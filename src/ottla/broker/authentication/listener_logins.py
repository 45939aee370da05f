"""Which mechanisms a listener accepts, and the exchange for a login there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.broker.authentication.exchange import Exchange


class Mechanism(NamedTuple):
    """One mechanism of a listener."""

    new_exchange: Callable[[], Exchange]
    reauthentication_ms: int = 0
    """How long a session may last (connections.max.reauth.ms); 0: without end."""


class ListenerLogins(NamedTuple):
    """The logins of one listener."""

    mechanisms: Mapping[str, Mechanism]
    receive_bytes_max: int = 524_288
    """Of one frame before the login (sasl.server.max.receive.size)."""
    failure_delay_ms: int = 100
    """How late a failure is answered (connection.failed.authentication.delay.ms)."""
