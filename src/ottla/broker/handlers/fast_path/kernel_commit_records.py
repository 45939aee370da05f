# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""What the fast path of offset commits writes: records, committed offsets and the reply, in one source for two variants.

`kernel_commit.py` reads the request, and calls a `Commit` with every topic and partition. It makes none of the classes here
itself: a known group makes its commits, so that a reader gets those of its own variant.

    record    key: int16 type 1 | group | topic | int32 partition, texts behind an int16 length
              value: int16 version 4 | int64 offset | int32 leader epoch | metadata | int64 time | tags: the topic's id
    reply     int32 size | int32 correlation id | tags | int32 throttle time |
              topics: (name or id, partitions: (int32 index, int16 error, tags), tags) | tags

The rules for both variants are those of `records/kernel.py`. One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.coordinator.groups.offsets.store import NO_EXPIRY_MS, StoredOffset
from ottla.records import kernel_fields as fields
from ottla.records import layout
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.ids import Uuid
    from ottla.log.fast_path.kernel_append import FastAppend

_REPLY_HEAD_SIZE = 13
_REPLY_PARTITION_SIZE = 7
_UVARINT_SIZE_MAX = 5
_BATCH_HEAD_SIZE = layout.HEADER_SIZE
_LOG_OVERHEAD = layout.LOG_OVERHEAD
_LENGTH_AT = layout.LENGTH_AT
_LEADER_EPOCH_AT = layout.LEADER_EPOCH_AT
_MAGIC_AT = layout.MAGIC_AT
_CRC_AT = layout.CRC_AT
_CRC_START = layout.CRC_START
_LAST_OFFSET_DELTA_AT = layout.LAST_OFFSET_DELTA_AT
_BASE_TIMESTAMP_AT = layout.BASE_TIMESTAMP_AT
_MAX_TIMESTAMP_AT = layout.MAX_TIMESTAMP_AT
_PRODUCER_ID_AT = layout.PRODUCER_ID_AT
_PRODUCER_EPOCH_AT = layout.PRODUCER_EPOCH_AT
_BASE_SEQUENCE_AT = layout.BASE_SEQUENCE_AT
_COUNT_AT = layout.COUNT_AT
_MAGIC = layout.MAGIC
_VALUE_VERSION = 4
_VALUE_SIZE = 22
"""Of a record's value: version, offset, leader epoch and time."""
_RECORD_OVERHEAD = 32
"""What surrounds a record's key and value, at most: as the coordinator's host counts."""
_REQUEST_VERSION = 13


class KnownTopic:
    """What is the same in all commits of a group for a topic. `count` is that of its partitions."""

    __slots__ = ("count", "id", "key_head", "name", "value_tail")

    def __init__(self, name: str, id: Uuid, count: int, key_head: bytes, value_tail: bytes) -> None:
        self.name = name
        self.id = id
        self.count = count
        self.key_head = key_head
        """Of a record's key: everything but the partition."""
        self.value_tail = value_tail
        """Of a record's value: its tags."""


class KnownGroup:
    """A group that has committed before, and where its records go. Forgotten when the cluster changes or the shard ends."""

    __slots__ = (
        "batch_bytes_max",
        "by_id",
        "by_name",
        "epoch",
        "group_id",
        "hosted",
        "metadata_bytes_max",
        "offsets",
        "partition",
    )

    def __init__(
        self,
        group_id: str,
        hosted: Any,
        offsets: Any,
        partition: PartitionTail,
        epoch: int,
        metadata_bytes_max: int,
        batch_bytes_max: int,
    ) -> None:
        self.group_id = group_id
        self.hosted = hosted
        self.offsets = offsets
        self.partition = partition
        self.epoch = epoch
        self.metadata_bytes_max = metadata_bytes_max
        self.batch_bytes_max = batch_bytes_max
        self.by_id: dict[bytes, KnownTopic] = {}
        self.by_name: dict[bytes, KnownTopic] = {}
        """By what the request has: the name behind its length."""

    def begin(self, frame: bytearray, version: int, now_ms: int) -> Commit:
        """A commit of the group, with nothing in it so far."""
        commit = Commit()
        commit.group = self
        commit.frame = frame
        commit.version = version
        commit.now_ms = now_ms
        commit.batch = bytearray(_BATCH_HEAD_SIZE + 2 * len(frame))
        commit.size = commit.estimated_bytes = _BATCH_HEAD_SIZE
        commit.first_offset = self.partition.log.log_end_offset
        commit.topics, commit.indexes, commit.committed = [], [], []
        return commit


class Commit:
    """One request, as far as it has been read. Who commits (member, instance, generation) is the reader's to fill in."""

    __slots__ = (
        "batch",
        "committed",
        "estimated_bytes",
        "first_offset",
        "frame",
        "generation",
        "group",
        "indexes",
        "instance_id",
        "member_id",
        "now_ms",
        "size",
        "topics",
        "version",
    )

    batch: bytearray
    committed: list[StoredOffset]
    estimated_bytes: int
    first_offset: int
    frame: bytearray
    generation: int
    group: KnownGroup
    indexes: list[int]
    instance_id: str | None
    member_id: str
    now_ms: int
    size: int
    """How much of `batch` is written."""
    topics: list[tuple[int, int, int, KnownTopic]]
    """Where the name or id of each begins and ends in the frame, and how many partitions it has."""
    version: int

    def add(
        self, topic: KnownTopic, index: int, offset: int, leader_epoch: int, metadata: str, metadata_at: int, metadata_size: int
    ) -> bool:
        """Write the record of a partition, whose metadata are these bytes of the frame; False if the batch gets too large."""
        key_head, value_tail = topic.key_head, topic.value_tail
        key_size = len(key_head) + 4
        value_size = _VALUE_SIZE + fields.uvarint_size(metadata_size + 1) + metadata_size + len(value_tail)
        self.estimated_bytes += _RECORD_OVERHEAD + key_size + value_size
        if self.estimated_bytes > self.group.batch_bytes_max:
            return False
        count = len(self.indexes)
        batch = self.batch
        if self.size + _RECORD_OVERHEAD + key_size + value_size > len(batch):
            batch.extend(bytes(len(batch) + _RECORD_OVERHEAD + key_size + value_size))
        out = batch
        # attributes, timestamp delta 0, offset delta, key, value, no headers
        size = 3 + fields.varint_size(count)
        size += fields.varint_size(key_size) + key_size + fields.varint_size(value_size) + value_size
        at = fields.put_varint(out, self.size, size)
        out[at] = 0
        out[at + 1] = 0
        at = fields.put_varint(out, at + 2, count)
        at = fields.put_varint(out, at, key_size)
        at = fields.copy(out, at, key_head, 0, key_size - 4)
        fields.put_number(out, at, index, 4)
        at = fields.put_varint(out, at + 4, value_size)
        fields.put_number(out, at, _VALUE_VERSION, 2)
        fields.put_number(out, at + 2, offset, 8)
        fields.put_number(out, at + 10, leader_epoch, 4)
        at = fields.put_uvarint(out, at + 14, metadata_size + 1)
        at = fields.copy(out, at, self.frame, metadata_at, metadata_size)
        fields.put_number(out, at, self.now_ms, 8)
        at = fields.copy(out, at + 8, value_tail, 0, len(value_tail))
        out[at] = 0
        self.size = at + 1
        self.indexes.append(index)
        self.committed.append((self.first_offset + count, offset, leader_epoch, metadata, self.now_ms, NO_EXPIRY_MS, topic.id))
        return True

    def check_fast(self) -> FastAppend:
        """Write the batch's header, and check whether the batch can be appended at once; the log is not changed."""
        batch = self.batch
        count = len(self.indexes)
        size = self.size
        del batch[size:]
        out = batch
        fields.put_number(out, _LENGTH_AT, size - _LOG_OVERHEAD, 4)
        fields.put_number(out, _LEADER_EPOCH_AT, -1, 4)
        out[_MAGIC_AT] = _MAGIC
        fields.put_number(out, _LAST_OFFSET_DELTA_AT, count - 1, 4)
        fields.put_number(out, _BASE_TIMESTAMP_AT, self.now_ms, 8)
        fields.put_number(out, _MAX_TIMESTAMP_AT, self.now_ms, 8)
        fields.put_number(out, _PRODUCER_ID_AT, -1, 8)
        fields.put_number(out, _PRODUCER_EPOCH_AT, -1, 2)
        fields.put_number(out, _BASE_SEQUENCE_AT, -1, 4)
        fields.put_number(out, _COUNT_AT, count, 4)
        view = memoryview(batch)
        fields.put_number(out, _CRC_AT, crc32c(view[_CRC_START:]), 4)
        partition = self.group.partition
        return partition.log.check_fast(batch, 0, view, partition.leader_epoch, self.now_ms, False, _REQUEST_VERSION)

    def replay(self) -> None:
        """Take the offsets over: their records are in the log."""
        group = self.group
        number = last = 0
        for _, _, count, topic in self.topics:
            partitions = group.offsets.replay_into(group.group_id, topic.name)
            last += count
            while number < last:
                partitions[self.indexes[number]] = self.committed[number]
                number += 1

    def reply(self, code: int) -> bytearray:
        """The whole reply, with the same error code for all partitions."""
        size = _REPLY_HEAD_SIZE + _UVARINT_SIZE_MAX + 1 + len(self.indexes) * _REPLY_PARTITION_SIZE
        for start, end, _, _ in self.topics:
            size += end - start + _UVARINT_SIZE_MAX + 1
        reply = bytearray(size)
        out = reply
        raw = self.frame
        fields.copy(out, 4, raw, 4, 4)  # the correlation id is in the same place
        position = fields.put_uvarint(out, _REPLY_HEAD_SIZE, len(self.topics) + 1)
        number = last = 0
        for start, end, count, _ in self.topics:
            position = fields.copy(out, position, raw, start, end - start)
            position = fields.put_uvarint(out, position, count + 1)
            last += count
            while number < last:
                fields.put_number(out, position, self.indexes[number], 4)
                fields.put_number(out, position + 4, code, 2)
                position += _REPLY_PARTITION_SIZE
                number += 1
            position += 1
        position += 1
        fields.put_number(out, 0, position - 4, 4)
        del reply[position:]
        return reply
