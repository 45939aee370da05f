# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The fast path of offset commits, from the bytes of the frame to the bytes of the reply, in one source for two variants.

It takes requests of version 8 or later, for at most 500 partitions that exist, with metadata of at most 4096 bytes, while the
coordinator has no records to append. The records are written as the frame is read, appended at once as a batch of their own,
and put into the committed offsets; nothing is decoded again. With other replicas in sync the reply waits for the high
watermark. `offset_commit.py` handles all others. Both must come to the same: tests compare them.

The group decides who may commit (`Offsets.check_commit`); a refusal is answered here, with its code for all partitions. This
file reads the request; `kernel_commit_records.py` has what is written.

    request   int16 api key | int16 version | int32 correlation id | int16 length, client id | tags |
              group id | int32 generation | member id | instance id |
              topics: (name or id, partitions: (int32 index, int64 offset, int32 leader epoch, metadata, tags), tags) | tags

Counts and texts have uvarint lengths that are one more than they say; 0 is null. The rules for both variants are those of
`records/kernel.py`: every position is compared with the frame's end before it is read. One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import OttlaError
from ottla.records import kernel_fields as fields
from ottla.records.decline import Decline
from ottla.wire.elements import MANY_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.handlers.fast_path.kernel_commit_records import Commit, KnownGroup, KnownTopic
    from ottla.broker.requests.context import Pending
    from ottla.coordinator.contract import Instant

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
_ELEMENTS_MAX = MANY_ELEMENTS
"""Commits of more partitions are left to the general path, which handles them in portions."""
_DECLINE_NO = int(Decline.NO)


class FastCommit:
    """Answers offset commits from their frames; one per node.

    `find_group` and `find_topic` remember what they find; None: it is not here.
    """

    __slots__ = ("_find_group", "_find_topic", "_granted_groups", "_granted_topics", "_groups")

    def __init__(
        self,
        groups: dict[bytes, KnownGroup],
        find_group: Callable[[bytes], KnownGroup | None],
        find_topic: Callable[[KnownGroup, bytes, bool], KnownTopic | None],
    ) -> None:
        self._groups = groups
        self._find_group = find_group
        self._find_topic = find_topic
        self._granted_groups: set[str | bytes] | None = None
        self._granted_topics: set[str | bytes] | None = None

    def answer(
        self,
        frame: bytearray,
        now: Instant,
        now_ms: int,
        granted_groups: set[str | bytes] | None,
        granted_topics: set[str | bytes] | None,
    ) -> bytearray | Pending | None:
        """The whole reply to the commit in `frame`, now or later; None, with nothing changed, leaves it to `offset_commit.py`.

        So it does if the granted names (None: all) lack the group or a topic.
        If the log's disk fails, the shard is given up, and the error for clients is raised.
        """
        self._granted_groups = granted_groups
        self._granted_topics = granted_topics
        try:
            commit = self._read(frame, len(frame), now_ms)
        except UnicodeDecodeError:
            return None
        if commit is None:
            return None
        append = commit.check_fast()
        if append.decline != _DECLINE_NO:
            return None  # the general path writes a batch of its own: what is known of this one is of no use to it
        group = commit.group
        code = group.offsets.check_commit(
            group.group_id, commit.member_id, commit.instance_id, commit.generation, commit.version, now
        )
        if code is None:
            return None
        if code == 0:
            try:
                group.partition.write(append)
            except OttlaError as failure:
                raise group.hosted.failed(failure) from None
            commit.replay()
            log = group.partition.log
            if log.high_watermark < log.log_end_offset:
                later: Pending = group.hosted.reply_when_committed(commit)
                return later
        return commit.reply(code)

    def _read(self, frame: bytearray, end: int, now_ms: int) -> Commit | None:
        """Read the frame, and write the records; None to leave it to `offset_commit.py`."""
        raw = frame
        if end < _HEAD_SIZE:
            return None
        version = fields.number(raw, 2, 2)
        if fields.number(raw, 0, 2) != _API_KEY or version < _VERSION_MIN or version > _VERSION_MAX:
            return None
        position = _HEAD_SIZE
        client_id_size = fields.number(raw, 8, 2)
        if client_id_size > 0:
            position += client_id_size
        if position >= end or raw[position] != 0:
            return None
        size, position = fields.uvarint(raw, position + 1, end)
        at = position
        position += size - 1
        if size < 2 or position + 4 > end:
            return None
        name = bytes(raw[at:position])
        group = self._groups.get(name)
        if group is None:
            group = self._find_group(name)
            if group is None:
                return None
        if not _may_append(group):
            return None
        if self._granted_groups is not None and group.group_id not in self._granted_groups:
            return None
        commit = group.begin(frame, version, now_ms)
        commit.generation = fields.number(raw, position, 4)
        size, position = fields.uvarint(raw, position + 4, end)
        at = position
        position += size - 1
        if size < 1 or position >= end:
            return None
        commit.member_id = "" if size == 1 else bytes(raw[at:position]).decode()
        size, position = fields.uvarint(raw, position, end)
        commit.instance_id = None
        if size > 0:
            if position + size - 1 > end:
                return None
            commit.instance_id = bytes(raw[position : position + size - 1]).decode()
            position += size - 1
        count, position = fields.uvarint(raw, position, end)
        if count < 2:
            return None
        for _ in range(count - 1):
            position = self._read_topic(frame, position, end, commit)
            if position < 0:
                return None
        return commit if position + 1 == end and raw[position] == 0 else None

    def _read_topic(self, frame: bytearray, position: int, end: int, commit: Commit) -> int:
        """Read one topic; returns where it ends, or -1 to leave the request to `offset_commit.py`."""
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
            size, position = fields.uvarint(raw, position, end)
            position += size - 1
            if size < 2 or position > end:
                return -1
            name = bytes(raw[start:position])
            topic = group.by_name.get(name)
        if topic is None:
            topic = self._find_topic(group, name, commit.version >= _TOPIC_IDS_SINCE)
            if topic is None:
                return -1
        if self._granted_topics is not None and topic.name not in self._granted_topics:
            return -1
        stop = position
        count, position = fields.uvarint(raw, position, end)
        if count < 2 or count - 1 + len(commit.indexes) > _ELEMENTS_MAX:
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
    """Whether a batch can be appended for the group now: all that was decided before is in the log."""
    partition = group.partition
    if (
        not partition.is_leading
        or partition.leader_epoch != group.epoch
        or partition.flushing is not None
        or len(partition.isr) < partition.min_isr
    ):
        return False
    return bool(group.hosted.may_append)


def _read_partition(frame: bytearray, position: int, end: int, commit: Commit, topic: KnownTopic) -> int:
    """Read one partition and write its record; returns where it ends, or -1 to leave the request to `offset_commit.py`."""
    raw = frame
    if position + _PARTITION_HEAD_SIZE > end:
        return -1
    index = fields.number(raw, position, 4)
    offset = fields.number(raw, position + 4, 8)
    leader_epoch = fields.number(raw, position + 12, 4)
    size, position = fields.uvarint(raw, position + _PARTITION_HEAD_SIZE, end)
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
    if not commit.add(topic, index, offset, leader_epoch, metadata, metadata_at, metadata_size):
        return -1
    return position + 1
