"""Decodes the topics that a classic member subscribes to from its protocol metadata."""

from __future__ import annotations

from struct import Struct

from ottla.errors import DecodeError
from ottla.wire.codec import decode
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers; the metadata of others (connect, schema registries) is opaque to the broker."""

_VERSION = Struct(">h")
_COMMON_VERSION = 0  # every later version begins with it


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics in one member's subscription; `DecodeError` if it is malformed."""
    if len(metadata) < _VERSION.size:
        raise DecodeError("a subscription begins with its version", 0)
    (version,) = _VERSION.unpack_from(metadata)
    if version < 0:
        raise DecodeError(f"a subscription cannot have the version {version}", 0)
    subscription, _ = decode(ConsumerProtocolSubscription, _COMMON_VERSION, metadata, _VERSION.size)
    return subscription.topics
