# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""What a usual commit of offsets comes to: its records, the offsets taken over, its reply; in one source for two twins.

`kernel_commit.py` reads the request, and tells a `Commit` of every topic and partition as it comes to them. It makes none of
the classes here itself: a group that is known makes its commits, so that a reader gets those of its own twin.

    record    key: int16 type 1 | group | topic | int32 partition, texts behind an int16 length
              value: int16 version 4 | int64 offset | int32 leader epoch | metadata | int64 time | tags: the topic's id
    reply     int32 size | int32 correlation id | tags | int32 throttle time |
              topics: (name or id, partitions: (int32 index, int16 error, tags), tags) | tags

The rules for both twins are those of `records/kernel.py`. One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.coordinator.groups.offsets.store import NO_EXPIRY_MS, StoredOffset
from ottla.records import kernel_fields as fields
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.ids import Uuid
    from ottla.log.fast_path.kernel_append import Prepared

_REPLY_HEAD_SIZE = 13
_REPLY_PARTITION_SIZE = 7
_UVARINT_SIZE_MAX = 5
_BATCH_HEAD_SIZE = 61
_LOG_OVERHEAD = 12
_CRC_AT = 17
_CRC_START = 21
_MAGIC = 2
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

    def prepared(self) -> Prepared | None:
        """The batch with its header, if it can be appended; nothing is changed."""
        batch = self.batch
        count = len(self.indexes)
        size = self.size
        del batch[size:]
        out = batch
        fields.put_number(out, 8, size - _LOG_OVERHEAD, 4)
        fields.put_number(out, 12, -1, 4)
        out[16] = _MAGIC
        fields.put_number(out, 23, count - 1, 4)
        fields.put_number(out, 27, self.now_ms, 8)
        fields.put_number(out, 35, self.now_ms, 8)
        fields.put_number(out, 43, -1, 8)
        fields.put_number(out, 51, -1, 2)
        fields.put_number(out, 53, -1, 4)
        fields.put_number(out, 57, count, 4)
        view = memoryview(batch)
        fields.put_number(out, _CRC_AT, crc32c(view[_CRC_START:]), 4)
        partition = self.group.partition
        return partition.log.prepare(batch, 0, view, partition.leader_epoch, self.now_ms, False, _REQUEST_VERSION)

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
