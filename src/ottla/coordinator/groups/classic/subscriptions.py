"""Which topics the members of a consumer group read, as far as the broker can tell from what they say to each other."""

from __future__ import annotations

from struct import Struct

from ottla.errors import DecodeError
from ottla.wire.codec import decode
from ottla.wire.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers; others (connect, schema registries) say what only they understand."""

_VERSION = Struct(">h")
_COMMON_VERSION = 0  # every later version begins with it


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics in one member's subscription. `DecodeError` if it is none."""
    if len(metadata) < _VERSION.size:
        raise DecodeError("a subscription begins with its version", 0)
    (version,) = _VERSION.unpack_from(metadata)
    if version < 0:
        raise DecodeError(f"a subscription cannot have the version {version}", 0)
    subscription, _ = decode(ConsumerProtocolSubscription, _COMMON_VERSION, metadata, _VERSION.size)
    return subscription.topics
