# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The usual commit of offsets, from the bytes of its frame to the bytes of its reply, in one source for two twins.

Usual is: version 8 or later, partitions that there are, metadata of ordinary length, a coordinator that has nothing under way
and whose partition has no other replica in sync. Then the records are written as the frame is read, appended at once as a batch
of their own, and taken over into the offsets that are committed; nothing waits and nothing is decoded again. Whatever is not
usual is left as it came for `offset_commit.py`, which also is what this must come to: tests hold the two to each other.

Who may commit is asked of the group, as ever (`Offsets.check_commit`); a refusal is answered here, with its code for all.

    request   int16 api key | int16 version | int32 correlation id | int16 length, client id | tags |
              group id | int32 generation | member id | instance id |
              topics: (name or id, partitions: (int32 index, int64 offset, int32 leader epoch, metadata, tags), tags) | tags
    record    key: int16 type 1 | group | topic | int32 partition, texts behind an int16 length
              value: int16 version 4 | int64 offset | int32 leader epoch | metadata | int64 time | tags: the topic's id
    reply     int32 size | int32 correlation id | tags | int32 throttle time |
              topics: (name or id, partitions: (int32 index, int16 error, tags), tags) | tags

Counts and texts have uvarint lengths that are one more than they say; 0 is null. The rules for both twins are those of
`records/kernel.py`: every position is compared with the frame's end before it is read. One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.coordinator.groups.offsets.store import CommittedOffset
from ottla.errors import OttlaError
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.coordinator.contract import Instant
    from ottla.log.kernel import Prepared

_API_KEY = 8
_VERSION_MIN = 8
_VERSION_MAX = 10
_TOPIC_IDS_SINCE = 10
_UUID_SIZE = 16
_HEAD_SIZE = 10
"""Of a request: up to and including the length of the client id."""
_PARTITION_HEAD_SIZE = 16
"""Of a request: index, offset and leader epoch."""
_METADATA_SIZE_MAX = 4096
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
_INT32_MAX = 0x7FFFFFFF

_new = tuple.__new__  # of a named tuple, without its keyword arguments


class KnownTopic:
    """What is the same in all commits of a group for a topic. `count` is that of its partitions."""

    __slots__ = ("count", "id", "key_head", "name", "value_tail")

    def __init__(self, name: str, id: bytes, count: int, key_head: bytes, value_tail: bytes) -> None:
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


class Commit:
    """One request, as far as it has been read."""

    __slots__ = (
        "batch",
        "committed",
        "estimated_bytes",
        "first_offset",
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
    committed: list[CommittedOffset]
    estimated_bytes: int
    first_offset: int
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


class UsualCommit:
    """Answers usual commits; one per node. `find_group` and `find_topic` note what they find; None: it is not here."""

    __slots__ = ("_find_group", "_find_topic", "_groups")

    def __init__(
        self,
        groups: dict[bytes, KnownGroup],
        find_group: Callable[[bytes], KnownGroup | None],
        find_topic: Callable[[KnownGroup, bytes, bool], KnownTopic | None],
    ) -> None:
        self._groups = groups
        self._find_group = find_group
        self._find_topic = find_topic

    def answer(self, frame: bytearray, now: Instant, now_ms: int) -> bytearray | None:
        """The whole reply to the commit in `frame`; None, with nothing changed, if it is not a usual one.

        What the log raises when its disk fails goes to the caller, in the words for clients; the shard is given up then.
        """
        commit = Commit()
        commit.now_ms = now_ms
        try:
            if not self._read(frame, len(frame), commit):
                return None
        except UnicodeDecodeError:
            return None
        prepared = _prepared(commit)
        if prepared is None:
            return None
        group = commit.group
        code = group.offsets.check_commit(
            group.group_id, commit.member_id, commit.instance_id, commit.generation, commit.version, now
        )
        if code is None:
            return None
        if code == 0:
            try:
                group.partition.commit(prepared)
            except OttlaError as failure:
                raise group.hosted.failed(failure) from None
            _replay(commit)
        return _reply(frame, commit.topics, commit.indexes, code)

    def _read(self, frame: bytearray, end: int, commit: Commit) -> bool:
        """Read the frame, and write the records; whether it is usual."""
        raw = frame
        if end < _HEAD_SIZE:
            return False
        version = _number(raw, 2, 2)
        if _number(raw, 0, 2) != _API_KEY or version < _VERSION_MIN or version > _VERSION_MAX:
            return False
        position = _HEAD_SIZE
        client_id_size = _number(raw, 8, 2)
        if client_id_size > 0:
            position += client_id_size
        if position >= end or raw[position] != 0:
            return False
        size, position = _uvarint(raw, position + 1, end)
        at = position
        position += size - 1
        if size < 2 or position + 4 > end:
            return False
        name = bytes(raw[at:position])
        group = self._groups.get(name)
        if group is None:
            group = self._find_group(name)
            if group is None:
                return False
        if not _may_append(group):
            return False
        commit.group = group
        commit.version = version
        commit.generation = _number(raw, position, 4)
        size, position = _uvarint(raw, position + 4, end)
        at = position
        position += size - 1
        if size < 1 or position >= end:
            return False
        commit.member_id = "" if size == 1 else bytes(raw[at:position]).decode()
        size, position = _uvarint(raw, position, end)
        commit.instance_id = None
        if size > 0:
            if position + size - 1 > end:
                return False
            commit.instance_id = bytes(raw[position : position + size - 1]).decode()
            position += size - 1
        count, position = _uvarint(raw, position, end)
        if count < 2:
            return False
        commit.batch = bytearray(_BATCH_HEAD_SIZE + 2 * end)
        commit.size = commit.estimated_bytes = _BATCH_HEAD_SIZE
        commit.first_offset = group.partition.log.log_end_offset
        commit.topics, commit.indexes, commit.committed = [], [], []
        for _ in range(count - 1):
            position = self._read_topic(frame, position, end, commit)
            if position < 0:
                return False
        return position + 1 == end and raw[position] == 0

    def _read_topic(self, frame: bytearray, position: int, end: int, commit: Commit) -> int:
        """Read one topic; returns where it ends, or -1 if it is not usual."""
        raw = frame
        group = commit.group
        start = position
        if commit.version >= _TOPIC_IDS_SINCE:
            position += _UUID_SIZE
            if position > end:
                return -1
            name = bytes(raw[start:position])
            topic = group.by_id.get(name)
        else:
            size, position = _uvarint(raw, position, end)
            position += size - 1
            if size < 2 or position > end:
                return -1
            name = bytes(raw[start:position])
            topic = group.by_name.get(name)
        if topic is None:
            topic = self._find_topic(group, name, commit.version >= _TOPIC_IDS_SINCE)
            if topic is None:
                return -1
        stop = position
        count, position = _uvarint(raw, position, end)
        if count < 2:
            return -1
        commit.topics.append((start, stop, count - 1, topic))
        for _ in range(count - 1):
            position = _read_partition(frame, position, end, commit, topic)
            if position < 0:
                return -1
        if position >= end or raw[position] != 0:
            return -1
        return position + 1


def _may_append(group: KnownGroup) -> bool:
    """Whether a batch can be appended for the group and acknowledged at once, with nothing before it still to be told."""
    partition = group.partition
    if (
        not partition.is_leading
        or partition.leader_epoch != group.epoch
        or partition.flushing is not None
        or partition.ack_waits
        or partition._others_in_sync
        or len(partition.isr) < partition.min_isr
        or partition.log.high_watermark != partition.log.log_end_offset
    ):
        return False
    return bool(group.hosted.is_at_rest)


def _read_partition(frame: bytearray, position: int, end: int, commit: Commit, topic: KnownTopic) -> int:
    """Read one partition and write its record; returns where it ends, or -1 if it is not usual."""
    raw = frame
    if position + _PARTITION_HEAD_SIZE > end:
        return -1
    index = _number(raw, position, 4)
    offset = _number(raw, position + 4, 8)
    leader_epoch = _number(raw, position + 12, 4)
    size, position = _uvarint(raw, position + _PARTITION_HEAD_SIZE, end)
    if size < 0:
        return -1
    metadata_size = size - 1 if size > 0 else 0
    metadata_at = position
    position += metadata_size
    if (
        position >= end
        or raw[position] != 0
        or index < 0
        or index >= topic.count
        or metadata_size > commit.group.metadata_bytes_max
        or metadata_size > _METADATA_SIZE_MAX
    ):
        return -1
    metadata = "" if metadata_size == 0 else bytes(raw[metadata_at:position]).decode()
    key_size = len(topic.key_head) + 4
    value_size = _VALUE_SIZE + _uvarint_size(metadata_size + 1) + metadata_size + len(topic.value_tail)
    commit.estimated_bytes += _RECORD_OVERHEAD + key_size + value_size
    if commit.estimated_bytes > commit.group.batch_bytes_max:
        return -1
    count = len(commit.indexes)
    batch = commit.batch
    if commit.size + _RECORD_OVERHEAD + key_size + value_size > len(batch):
        batch.extend(bytes(len(batch) + _RECORD_OVERHEAD + key_size + value_size))
    out = batch
    # length, attributes, timestamp delta 0, offset delta, key, value, no headers; of small numbers, zigzag is twice the number
    size = 3 + _uvarint_size(2 * count) + _uvarint_size(2 * key_size) + key_size + _uvarint_size(2 * value_size) + value_size
    at = _put_uvarint(out, commit.size, 2 * size)
    out[at] = 0
    out[at + 1] = 0
    at = _put_uvarint(out, at + 2, 2 * count)
    at = _put_uvarint(out, at, 2 * key_size)
    at = _copy(batch, at, topic.key_head)
    _put(out, at, index, 4)
    at = _put_uvarint(out, at + 4, 2 * value_size)
    _put(out, at, _VALUE_VERSION, 2)
    _put(out, at + 2, offset, 8)
    _put(out, at + 10, leader_epoch, 4)
    at = _put_uvarint(out, at + 14, metadata_size + 1)
    for step in range(metadata_size):
        out[at + step] = raw[metadata_at + step]
    at += metadata_size
    _put(out, at, commit.now_ms, 8)
    at = _copy(batch, at + 8, topic.value_tail)
    out[at] = 0
    commit.size = at + 1
    commit.indexes.append(index)
    commit.committed.append(
        _new(CommittedOffset, (commit.first_offset + count, offset, leader_epoch, metadata, commit.now_ms, -1, topic.id))
    )
    return position + 1


def _prepared(commit: Commit) -> Prepared | None:
    """The batch with its header, if it can be appended; nothing is changed."""
    batch = commit.batch
    count = len(commit.indexes)
    size = commit.size
    del batch[size:]
    out = batch
    _put(out, 8, size - _LOG_OVERHEAD, 4)
    _put(out, 12, -1, 4)
    out[16] = _MAGIC
    _put(out, 23, count - 1, 4)
    _put(out, 27, commit.now_ms, 8)
    _put(out, 35, commit.now_ms, 8)
    _put(out, 43, -1, 8)
    _put(out, 51, -1, 2)
    _put(out, 53, -1, 4)
    _put(out, 57, count, 4)
    view = memoryview(batch)
    _put(out, _CRC_AT, crc32c(view[_CRC_START:]), 4)
    partition = commit.group.partition
    return partition.log.prepare(batch, 0, view, partition.leader_epoch, commit.now_ms, False, _REQUEST_VERSION)


def _replay(commit: Commit) -> None:
    """Take the offsets over: their records are in the log."""
    group = commit.group
    number = last = 0
    for _, _, count, topic in commit.topics:
        partitions = group.offsets.replay_into(group.group_id, topic.name)
        last += count
        while number < last:
            partitions[commit.indexes[number]] = commit.committed[number]
            number += 1


def _reply(frame: bytearray, topics: list[tuple[int, int, int, KnownTopic]], indexes: list[int], code: int) -> bytearray:
    size = _REPLY_HEAD_SIZE + _UVARINT_SIZE_MAX + 1 + len(indexes) * _REPLY_PARTITION_SIZE
    for start, end, _, _ in topics:
        size += end - start + _UVARINT_SIZE_MAX + 1
    reply = bytearray(size)
    out = reply
    raw = frame
    for at in range(4, 8):
        out[at] = raw[at]  # the correlation id is in the same place
    position = _put_uvarint(out, _REPLY_HEAD_SIZE, len(topics) + 1)
    number = last = 0
    for start, end, count, _ in topics:
        for at in range(start, end):
            out[position] = raw[at]
            position += 1
        position = _put_uvarint(out, position, count + 1)
        last += count
        while number < last:
            _put(out, position, indexes[number], 4)
            _put(out, position + 4, code, 2)
            position += _REPLY_PARTITION_SIZE
            number += 1
        position += 1
    position += 1
    _put(out, 0, position - 4, 4)
    del reply[position:]
    return reply


def _number(raw: bytearray, at: int, size: int) -> int:
    """The signed number of `size` bytes at `at`, which are there."""
    value = raw[at]
    if value > 127:
        value -= 256
    for index in range(1, size):
        value = value * 256 + raw[at + index]
    return value


def _uvarint(raw: bytearray, position: int, end: int) -> tuple[int, int]:
    """The number at `position`, and where it ends: (-1, beyond `end`) if there is none of 32 bits."""
    value = 0
    shift = 0
    while position < end and shift < 35:
        wide = raw[position]
        position += 1
        value |= (wide & 0x7F) << shift
        if wide < 0x80:
            if value > _INT32_MAX:
                break
            return value, position
        shift += 7
    return -1, end + 1


def _uvarint_size(value: int) -> int:
    size = 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


def _put(out: bytearray, at: int, value: int, size: int) -> None:
    index = size - 1
    while index >= 0:
        out[at + index] = value & 0xFF
        value >>= 8
        index -= 1


def _put_uvarint(out: bytearray, at: int, value: int) -> int:
    while value > 0x7F:
        out[at] = (value & 0x7F) | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


def _copy(batch: bytearray, at: int, field: bytes) -> int:
    """Write `field` at `at`, where there must be room for it; returns where it ends."""
    size = len(field)
    if _COMPILED:
        out = batch
        raw = field
        for index in range(size):
            out[at + index] = raw[index]
    else:
        batch[at : at + size] = field
    return at + size


# A compiled function is no plain function: that is how the twins know which of them they are.
_COMPILED = type(KnownTopic.__init__).__name__ != "function"
