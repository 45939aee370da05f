# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The usual commit of offsets, from the bytes of its frame to the bytes of its reply, in one source for two twins.

Usual is: version 8 or later, partitions that there are, metadata of ordinary length, a coordinator that has nothing under way
and whose partition has no other replica in sync. Then the records are written as the frame is read, appended at once as a batch
of their own, and taken over into the offsets that are committed; nothing waits and nothing is decoded again. Whatever is not
usual is left as it came for `offset_commit.py`, which also is what this must come to: tests hold the two to each other.

Who may commit is asked of the group, as ever (`Offsets.check_commit`); a refusal is answered here, with its code for all.
Here the request is read; `kernel_commit_records.py` has what is written.

    request   int16 api key | int16 version | int32 correlation id | int16 length, client id | tags |
              group id | int32 generation | member id | instance id |
              topics: (name or id, partitions: (int32 index, int64 offset, int32 leader epoch, metadata, tags), tags) | tags

Counts and texts have uvarint lengths that are one more than they say; 0 is null. The rules for both twins are those of
`records/kernel.py`: every position is compared with the frame's end before it is read. One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import OttlaError
from ottla.records import kernel_fields as fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.broker.handlers.fast_path.kernel_commit_records import Commit, KnownGroup, KnownTopic
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
        try:
            commit = self._read(frame, len(frame), now_ms)
        except UnicodeDecodeError:
            return None
        if commit is None:
            return None
        prepared = commit.prepared()
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
            commit.replay()
        return commit.reply(code)

    def _read(self, frame: bytearray, end: int, now_ms: int) -> Commit | None:
        """Read the frame, and write the records; None if it is not usual."""
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
        stop = position
        count, position = fields.uvarint(raw, position, end)
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
