"""Which topics the members of a consumer group read, as far as the broker can tell from what they say to each other."""

from __future__ import annotations

from ottla.wire.consumer_protocol import read_subscription

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers; others (connect, schema registries) say what only they understand."""

_COMMON_VERSION = 0  # every later version begins with it


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics in one member's subscription. `DecodeError` if it is none."""
    return read_subscription(metadata, _COMMON_VERSION).topics
