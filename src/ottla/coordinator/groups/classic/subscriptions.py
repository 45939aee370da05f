"""Decodes the topics that a classic member subscribes to from its protocol metadata."""

from __future__ import annotations

from ottla.wire.consumer_protocol import read_subscription

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of consumers; the metadata of others (connect, schema registries) is opaque to the broker."""

_COMMON_VERSION = 0  # every later version begins with it


def subscribed_topics(metadata: bytes) -> list[str]:
    """The topics in one member's subscription; `DecodeError` if it is malformed."""
    return read_subscription(metadata, _COMMON_VERSION).topics
