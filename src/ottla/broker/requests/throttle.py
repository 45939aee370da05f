"""The stage that slows down clients above their quota: the response says for how long, and their connection is not read.

A `Throttle` is the rule. There is none yet: nobody is slowed down. It is asked once for each request that is answered, when its
reply is ready; as in Kafka the reply is sent at once, and the connection is muted for that time: nothing is read from it, and
no request that has come already is handled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ottla.broker.requests.context import ConnectionInfo
    from ottla.wire.base import Part


class Usage(NamedTuple):
    """What one request has used."""

    connection: ConnectionInfo
    client_id: str | None
    quota: str
    """Which quota it counts for: see `apis.Quota`."""
    request_bytes: int
    reply_bytes: int
    time_s: float
    """From the complete request to the ready reply."""


class Throttle(Protocol):
    """The rule that says how long clients are slowed down."""

    def delay_ms(self, usage: Usage) -> int:
        """Note what a request has used; returns for how long its connection is muted."""
        ...


def mute(connection: ConnectionInfo, now_s: float, delay_ms: int) -> None:
    """Mute a connection from now on; `net/connection.py` sees to it."""
    connection.muted_until_s = max(connection.muted_until_s, now_s + delay_ms / 1000)


def put_delay(reply: list[Part], throttle_at: int, delay_ms: int) -> None:
    """Put `throttle_time_ms` into a reply that the fast path has made."""
    frame = reply[0]
    assert isinstance(frame, bytearray), "the fast path makes one frame"
    start = throttle_at % len(frame)
    frame[start : start + 4] = delay_ms.to_bytes(4, "big")
