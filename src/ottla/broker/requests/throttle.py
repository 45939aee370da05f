"""The stage that slows down clients above their quota: the response says for how long, and their connection is not read.

A `Throttle` is the rule; `quotas.py` has the one that operators set. It is asked once for each request, before the reply is
encoded. As in Kafka the reply is sent at once, and the connection is muted for that time: nothing is read from it, and no
request that has come already is handled. Of a Fetch, the handler asks: above the quota there are no records in its response.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from ottla.broker.requests.context import ConnectionInfo
    from ottla.wire.base import Message, Part

M = TypeVar("M", bound="Message")


class Usage(NamedTuple):
    """What one request has used."""

    connection: ConnectionInfo
    client_id: str | None
    quota: str
    """Which quota it counts for: see `apis.Quota`."""
    request_bytes: int
    reply_bytes: int
    """Of a Fetch; of other requests it does not count, and is 0."""
    time_s: float
    """How long the request has held the loop, until its response was ready or it was parked."""
    now_s: float
    is_answered: bool = True
    """Whether it gets a reply; a Produce request with acks=0 does not."""


class Throttle(Protocol):
    """The rule that says how long clients are slowed down."""

    def delay_ms(self, usage: Usage) -> int:
        """Note what a request has used; returns for how long its connection is muted."""
        ...

    def fetch_bytes_max(self, user: str, client_id: str | None) -> int:
        """How much one Fetch of a client may read."""
        ...


class Throttling:
    """The rule of one node."""

    __slots__ = ("rule",)

    def __init__(self) -> None:
        self.rule: Throttle | None = None
        """None: nobody is slowed down."""


def mute(connection: ConnectionInfo, now_s: float, delay_ms: int) -> None:
    """Mute a connection from now on; `net/connection.py` sees to it."""
    connection.muted_until_s = max(connection.muted_until_s, now_s + delay_ms / 1000)


def put_delay(reply: list[Part], throttle_at: int, delay_ms: int) -> None:
    """Put `throttle_time_ms` into a reply that the fast path has made."""
    frame = reply[0]
    assert isinstance(frame, bytearray), "the fast path makes one frame"
    start = throttle_at % len(frame)
    frame[start : start + 4] = delay_ms.to_bytes(4, "big")


def with_delay(response: M, delay_ms: int) -> M:
    """The response with `throttle_time_ms`, if it has that field. A copy: handlers may send one response to many clients."""
    if delay_ms <= 0 or not hasattr(response, "throttle_time_ms"):
        return response
    slowed = copy(response)
    slowed.throttle_time_ms = delay_ms
    return slowed
