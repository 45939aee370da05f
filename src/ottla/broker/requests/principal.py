"""`Principal`: who sends a request. Every connection has one; brokers pass their clients' on to the controller in Envelope.

Kafka's default encoding in Envelope: int16 version, then `DefaultPrincipalData`. All clients are anonymous for now.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.errors import DecodeError

_VERSION: Final = 0


class Principal(NamedTuple):
    """The authenticated identity of a peer, as in `User:alice`."""

    type: str = "User"
    name: str = "ANONYMOUS"
    is_token_authenticated: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal()


def encode_principal(principal: Principal) -> bytes:
    """The principal as Envelope carries it."""
    from ottla.wire.codec import encode_bytes  # late: few nodes forward
    from ottla.wire.messages.principal import DefaultPrincipalData

    data = DefaultPrincipalData(type=principal.type, name=principal.name, token_authenticated=principal.is_token_authenticated)
    return _VERSION.to_bytes(2, "big") + encode_bytes(data, _VERSION)


def decode_principal(data: bytes | bytearray | memoryview) -> Principal:
    """The principal that an Envelope carries; `DecodeError` if it is none in this encoding."""
    from ottla.wire.codec import decode_all
    from ottla.wire.messages.principal import DefaultPrincipalData

    version = int.from_bytes(data[:2], "big")
    if len(data) < 2 or version != _VERSION:
        raise DecodeError(f"a principal of {len(data)} bytes is not in version {_VERSION} of Kafka's default encoding", 0)
    found = decode_all(DefaultPrincipalData, version, data, 2)
    return Principal(found.type, found.name, found.token_authenticated)
