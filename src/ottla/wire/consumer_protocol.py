"""The consumer protocol: subscriptions and assignments that members of classic consumer groups write for each other.

They travel as bytes in JoinGroup and SyncGroup, and lie so in `__consumer_offsets`:

    int16 version | body in that version

Each version begins with the fields of the one before. A version that is not known here is read as the newest that is.
"""

from __future__ import annotations

from struct import Struct
from typing import TypeVar

from ottla.errors import DecodeError
from ottla.wire.base import Bytes
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

NEWEST_VERSION = 3
_VERSION = Struct(">h")

Body = TypeVar("Body", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def version_of(data: Bytes) -> int:
    """The version to read a subscription or an assignment in; `DecodeError` if `data` is neither."""
    if len(data) < _VERSION.size:
        raise DecodeError("a subscription or an assignment begins with its version", 0)
    (version,) = _VERSION.unpack_from(data)
    if version < 0:
        raise DecodeError(f"a subscription or an assignment cannot have the version {version}", 0)
    return min(int(version), NEWEST_VERSION)


def read_subscription(data: Bytes, version_max: int = NEWEST_VERSION) -> ConsumerProtocolSubscription:
    """The subscription that `data` is, without the fields after `version_max`; `DecodeError` if it is none."""
    return _read(ConsumerProtocolSubscription, data, version_max)


def read_assignment(data: Bytes) -> ConsumerProtocolAssignment:
    """The assignment that `data` is; `DecodeError` if it is none."""
    return _read(ConsumerProtocolAssignment, data, NEWEST_VERSION)


def _read(body: type[Body], data: Bytes, version_max: int) -> Body:
    return decode(body, min(version_of(data), version_max), data, _VERSION.size)[0]


def write(body: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int = NEWEST_VERSION) -> bytes:
    """A subscription or an assignment as bytes, behind its version."""
    return _VERSION.pack(version) + encode_bytes(body, version)
