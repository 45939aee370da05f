"""Counts the topics and partitions in the frame of a Produce request without parsing it.

The size of a Produce request is that of its records, so it does not tell how long parsing takes. This walks from length to
length, and stops after `MANY_ELEMENTS` elements, about 0.5 ms. A frame that it cannot follow has few elements as far as it
is concerned: the parser refuses it at the same place.
"""

from __future__ import annotations

from ottla.errors import DecodeError
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.varint import decode_uvarint

_FLEXIBLE_SINCE = 9
_TOPIC_IDS_SINCE = 13
_UUID_SIZE = 16
_AFTER_API_KEY, _AFTER_CORRELATION_ID = 2, 8
_ACKS_AND_TIMEOUT_SIZE = 6
_TAGS_MAX = 10


def has_many_elements(frame: bytearray, limit: int = MANY_ELEMENTS) -> bool:
    """Whether the request has more than `limit` topics and partitions together."""
    version = int.from_bytes(frame[_AFTER_API_KEY : _AFTER_API_KEY + 2], "big")
    try:
        return _walk_flexible(frame, version, limit) if version >= _FLEXIBLE_SINCE else _walk(frame, limit)
    except DecodeError:
        return False
    except ManyTags:
        return True


class ManyTags(Exception):
    """There are more tagged fields in one place than any client sends: they take long to parse too."""


def _walk_flexible(frame: bytearray, version: int, limit: int) -> bool:
    at = _skip_tags(frame, _skip_sized(frame, _AFTER_CORRELATION_ID, 2))  # the client id of a header is not compact
    at = _skip_compact(frame, at) + _ACKS_AND_TIMEOUT_SIZE
    topics, at = decode_uvarint(frame, at)
    count = topics - 1
    for _ in range(topics - 1):
        at = at + _UUID_SIZE if version >= _TOPIC_IDS_SINCE else _skip_compact(frame, at)
        partitions, at = decode_uvarint(frame, at)
        count += partitions - 1
        if count > limit:
            return True
        for _ in range(partitions - 1):
            at = _skip_tags(frame, _skip_compact(frame, at + 4))
        at = _skip_tags(frame, at)
    return count > limit


def _walk(frame: bytearray, limit: int) -> bool:
    at = _skip_sized(frame, _skip_sized(frame, _AFTER_CORRELATION_ID, 2), 2) + _ACKS_AND_TIMEOUT_SIZE
    topics, at = _number(frame, at, 4), at + 4
    count = topics
    for _ in range(topics):
        at = _skip_sized(frame, at, 2)
        partitions, at = _number(frame, at, 4), at + 4
        count += partitions
        if count > limit:
            return True
        for _ in range(partitions):
            at = _skip_sized(frame, at + 4, 4)
    return count > limit


def _number(frame: bytearray, at: int, size: int) -> int:
    if at + size > len(frame):
        raise DecodeError("the frame ends within a number")
    return int.from_bytes(frame[at : at + size], "big", signed=True)


def _skip_sized(frame: bytearray, at: int, size: int) -> int:
    """Where the text or the bytes end whose length is in `size` bytes; a negative length is null."""
    return at + size + max(0, _number(frame, at, size))


def _skip_compact(frame: bytearray, at: int) -> int:
    """Where the text or the bytes end whose length is a uvarint, one more than it says; 0 is null."""
    size, at = decode_uvarint(frame, at)
    return at + max(0, size - 1)


def _skip_tags(frame: bytearray, at: int) -> int:
    count, at = decode_uvarint(frame, at)
    if count > _TAGS_MAX:
        raise ManyTags
    for _ in range(count):
        _, at = decode_uvarint(frame, at)
        size, at = decode_uvarint(frame, at)
        at += size
    return at
