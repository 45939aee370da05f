"""The fast path of loading: replays records of offsets from their bytes.

Nearly all records of __consumer_offsets are offsets in the form below: a key of type 1; no value, or one of version 3 or 4 with
a short metadata text and no tag but the topic id. Reading them without decoding messages is several times as fast. All other
records, damaged ones included, are left to `Offsets.replay`, the general path; a test compares the state after both.

    key        int16 1 | int16 size, group | int16 size, topic | int32 partition
    version 3  int16 3 | int64 offset | int32 leader epoch | int16 size, metadata | int64 commit time
    version 4  int16 4 | int64 offset | int32 leader epoch | uint8 size + 1, metadata | int64 commit time | tags
    tags       uint8 0, or uint8 1 | uint8 0 | uint8 16 | topic id
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING

from ottla.coordinator.contract import Producer
from ottla.coordinator.groups.offsets.store import NO_EXPIRY_MS, StoredOffset
from ottla.ids import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from ottla.coordinator.groups.offsets.offsets import Offsets
    from ottla.records.kernels import Record

_partition_in = Struct(">i").unpack_from
_head_of = Struct(">hqi").unpack_from
_time_in = Struct(">q").unpack_from
_with_id = Struct(">hqiBq3s16s").unpack
"""A whole value of version 4 with a topic id and no metadata, as consumers write it."""
_WITH_ID_SIZE = 42
_TYPE = b"\x00\x01"
_ID_TAG = b"\x01\x00\x10"
_NO_TEXT = 1
_HEAD_SIZE = 14
_TIME_SIZE = 8
_ONE_BYTE_MAX = 127
"""The largest varint of one byte, and the largest first byte of a size that is not negative."""


class FastOffsetReplay:
    """Replays records of offsets into `offsets`. For one load: it caches the names that it has read."""

    __slots__ = ("_ids", "_names", "_offsets")

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets
        self._names: dict[bytes, tuple[str, str]] = {}
        """Group and topic, by the bytes of the key before the partition."""
        self._ids: dict[bytes, Uuid] = {}
        """One object per topic id, shared by all its offsets."""

    def replay(self, records: Sequence[Record], at: int, producer: Producer | None) -> int:
        """See the contract of `FastReplay`."""
        offsets, names, ids = self._offsets, self._names, self._ids
        last_head: bytes | None = None
        partitions: dict[int, StoredOffset] = {}
        for index in range(at, len(records)):
            record = records[index]
            key, value = record.key, record.value
            if key is None:
                return index
            head = key[:-4]
            known = names.get(head)
            if known is None:
                known = _names_in(head)
                if known is None:
                    return index
                names[head] = known
            (partition,) = _partition_in(key, len(head))
            if value is None:
                offsets.remove((*known, partition))
                last_head = None  # `remove` may have dropped the empty dict that `partitions` is
                continue
            version, text_size, tags, metadata = 0, 0, b"", ""
            if len(value) == _WITH_ID_SIZE:
                version, offset, leader_epoch, text_size, commit_ms, tags, topic_id = _with_id(value)
            if version != 4 or text_size != _NO_TEXT or tags != _ID_TAG:
                fields = _fields_in(value)
                if fields is None:
                    return index
                offset, leader_epoch, metadata, commit_ms, topic_id = fields
            topic_id = ids.setdefault(topic_id, topic_id)
            committed = (record.offset, offset, leader_epoch, metadata, commit_ms, NO_EXPIRY_MS, topic_id)
            if producer is not None:
                offsets.put_pending(producer.id, (*known, partition), committed)
                continue
            if head != last_head:
                partitions, last_head = offsets.replay_into(*known), head
            partitions[partition] = committed
        return len(records)


def _names_in(head: bytes) -> tuple[str, str] | None:
    """Group and topic of a key without its partition; None if the key needs the general path."""
    group_end = 4 + int.from_bytes(head[2:4], "big")
    topic_at = group_end + 2
    if head[:2] != _TYPE or len(head) < topic_at or head[2] > _ONE_BYTE_MAX or head[group_end] > _ONE_BYTE_MAX:
        return None
    if len(head) - topic_at != int.from_bytes(head[group_end:topic_at], "big"):
        return None
    try:
        return head[4:group_end].decode(), head[topic_at:].decode()
    except UnicodeDecodeError:
        return None


def _fields_in(value: bytes) -> tuple[int, int, str, int, Uuid] | None:
    """Offset, leader epoch, metadata, commit time and topic id of a value; None if it needs the general path."""
    size = len(value)
    if size < _HEAD_SIZE + 2:
        return None
    version, offset, leader_epoch = _head_of(value)
    topic_id = ZERO_UUID
    if version == 4:
        text_at = _HEAD_SIZE + 1
        text_end = _HEAD_SIZE + value[_HEAD_SIZE]
        tags = value[text_end + _TIME_SIZE :]
        if not 1 <= value[_HEAD_SIZE] <= _ONE_BYTE_MAX:
            return None
        if len(tags) == 19 and tags[:3] == _ID_TAG:
            topic_id = Uuid(tags[3:])
        elif tags != b"\x00":
            return None
    elif version == 3:
        text_at = _HEAD_SIZE + 2
        text_end = size - _TIME_SIZE
        if text_end - text_at != int.from_bytes(value[_HEAD_SIZE:text_at], "big", signed=True) or text_end < text_at:
            return None
    else:
        return None
    try:
        metadata = value[text_at:text_end].decode()
    except UnicodeDecodeError:
        return None
    return offset, leader_epoch, metadata, _time_in(value, text_end)[0], topic_id
