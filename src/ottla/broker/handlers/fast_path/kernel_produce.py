# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The fast path of produce requests, from the bytes of the frame to the bytes of the reply, in one source for two variants.

It takes requests of version 9 or later, without a transaction, with acks=1 or all, for partitions that this node leads, whose
batches all pass `PartitionTail.check_fast`. Everything is checked before anything is changed. `produce.py` handles all others,
and is handed what was found out about their batches until then. Both must come to the same: tests compare them. The fast path
saves the objects in between.

With acks=all and other replicas in sync the reply is built at once too, and handed over with what it waits for (`Unsettled`).

    request   int16 api key | int16 version | int32 correlation id | int16 length, client id | tags | transactional id |
              int16 acks | int32 timeout | topics: (name or id, partitions: (int32 index, records, tags), tags) | tags
    reply     int32 size | int32 correlation id | tags |
              topics: (name or id, partitions: (int32 index, int16 error, int64 base offset, int64 append time, int64 log
              start, record errors, error message, tags), tags) | int32 throttle time | tags

Counts, texts and records have uvarint lengths that are one more than they say; 0 is null. The rules for both variants are
those of `records/kernel.py`: every position is compared with the frame's end before it is read. One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import KafkaError, OttlaError
from ottla.records import kernel_fields as fields
from ottla.records import kernel_views as views
from ottla.records import layout
from ottla.records.decline import Decline

if TYPE_CHECKING:
    from ottla.broker.partitions.kernel import PartitionTail
    from ottla.broker.partitions.partition import Partition
    from ottla.log.fast_path.kernel_append import FastAppend
    from ottla.records.kernel_batch import CheckedBatch

_VERSION_MIN = 9
_VERSION_MAX = 13
_TOPIC_IDS_SINCE = 13
_UUID_SIZE = 16
_HEAD_SIZE = 10
"""Of a request: up to and including the length of the client id."""
_REPLY_HEAD_SIZE = 9
_REPLY_TAIL_SIZE = 5
_PARTITION_SIZE = 33
"""Of a reply: everything about one partition."""
_UVARINT_SIZE_MAX = 5
_PARTITIONS_MAX = 500
_FRAME_BYTES_MAX = 16 << 20
"""Larger requests take the general path, which appends in slices: this one would hold the event loop for 10 ms and more."""
_TRANSACTIONAL = layout.TRANSACTIONAL
_DECLINE_NO = int(Decline.NO)


class Appended:
    """What became of one partition's batch."""

    __slots__ = ("append", "base_offset", "end_offset", "failure", "index", "partition")

    append: FastAppend
    """None while the request waits: it holds the frame."""
    base_offset: int
    end_offset: int
    """With acks=all: what the high watermark has to reach."""
    failure: KafkaError | None
    index: int
    partition: PartitionTail


class Unsettled:
    """A request whose batches are appended and wait for other replicas, and the reply to it, if nothing fails."""

    __slots__ = ("appended", "outcomes", "reply", "timeout_ms")

    appended: list[Appended]
    outcomes: list[tuple[bytes, list[Appended]]]
    """The same by topic: by its name or id, as the request has it."""
    reply: bytearray
    timeout_ms: int


class FastProduce:
    """Answers produce requests from their frames; one per node."""

    __slots__ = ("_acks", "_by_id", "_by_name", "_granted", "_requests", "_timeout_ms")

    def __init__(self, by_id: dict[bytes, dict[int, Partition]], by_name: dict[str, dict[int, Partition]]) -> None:
        self._by_id = by_id
        self._by_name = by_name
        self._granted: set[str | bytes] | None = None
        self._requests = 0
        self._acks = 0
        self._timeout_ms = 0

    def answer(
        self, frame: bytearray, now_ms: int, granted: set[str | bytes] | None
    ) -> bytearray | Unsettled | list[tuple[bytes, list[Appended]]] | dict[PartitionTail, CheckedBatch]:
        """The whole reply to the produce request in `frame`; with what it waits for, if other replicas must have the batches.

        A list where a disk failed amid it: what became of every partition, by the topic's name or id as the request has it.
        A dict, with nothing changed, where the request is left to `produce.py`: what is known of its batches. So it is if
        `granted` (None: all may be written to) lacks the name or id of a topic.
        """
        self._requests += 1
        topics: list[tuple[int, int, int]] = []  # where the name or id of each begins and ends, and how many partitions it has
        appended: list[Appended] = []
        view = memoryview(frame)
        self._granted = granted
        if not self._check(frame, len(frame), view, now_ms, topics, appended):
            return _checked(appended)
        acks, timeout_ms = self._acks, self._timeout_ms
        has_failed = is_unsettled = False
        for one in appended:
            try:
                partition = one.partition
                if not partition.is_leading:  # an earlier write of this request has found its disk failed
                    raise partition.refusal()
                one.base_offset = partition.write(one.append)
                one.end_offset = partition.log.log_end_offset
                if partition.log.high_watermark < one.end_offset:
                    is_unsettled = acks != 1 or is_unsettled
            except OttlaError as failure:
                one.failure = one.partition.refused_by(failure)
                has_failed = True
        if not has_failed and not is_unsettled:
            return _reply(frame, topics, appended)
        outcomes = []
        first = 0
        for start, end, count in topics:
            outcomes.append((bytes(view[start:end]), appended[first : first + count]))
            first += count
        if not is_unsettled:
            return outcomes
        unsettled = Unsettled()
        unsettled.appended = appended
        unsettled.outcomes = outcomes
        unsettled.reply = _reply(frame, topics, appended)
        unsettled.timeout_ms = timeout_ms
        for one in appended:
            one.append = None  # type: ignore[assignment]
        return unsettled

    def _check(
        self,
        data: bytearray,
        end: int,
        view: memoryview,
        now_ms: int,
        topics: list[tuple[int, int, int]],
        appended: list[Appended],
    ) -> bool:
        """Read the frame and check everything in it; False to leave it to `produce.py`."""
        if end < _HEAD_SIZE or end > _FRAME_BYTES_MAX:
            return False
        raw = views.raw_of(data)
        version = fields.number(raw, 2, 2)
        if fields.number(raw, 0, 2) != 0 or version < _VERSION_MIN or version > _VERSION_MAX:
            return False
        position = _HEAD_SIZE
        client_id_size = fields.number(raw, 8, 2)
        if client_id_size > 0:
            position += client_id_size
        # No tags, no transactional id, acks, timeout.
        if position + 8 > end or raw[position] != 0 or raw[position + 1] != 0:
            return False
        acks = fields.number(raw, position + 2, 2)
        if acks != -1 and acks != 1:
            return False
        self._acks = acks
        self._timeout_ms = fields.number(raw, position + 4, 4)
        count, position = fields.uvarint(raw, position + 8, end)
        if count < 2:
            return False
        for _ in range(count - 1):
            position = self._check_topic(data, position, end, view, version, now_ms, topics, appended)
            if position < 0:
                return False
        return position < end and raw[position] == 0

    def _check_topic(
        self,
        data: bytearray,
        position: int,
        end: int,
        view: memoryview,
        version: int,
        now_ms: int,
        topics: list[tuple[int, int, int]],
        appended: list[Appended],
    ) -> int:
        """Read one topic and check its batches; returns where it ends, or -1 to leave the request to `produce.py`."""
        raw = views.raw_of(data)
        start = position
        if version >= _TOPIC_IDS_SINCE:
            position += _UUID_SIZE
            if position > end:
                return -1
            topic_id = bytes(view[start:position])
            held = self._by_id.get(topic_id)
            if self._granted is not None and topic_id not in self._granted:
                return -1
        else:
            size, position = fields.uvarint(raw, position, end)
            name_at = position
            position += size - 1
            if size < 1 or position > end:
                return -1
            try:
                name = str(view[name_at:position], "utf-8")
            except UnicodeDecodeError:
                return -1
            held = self._by_name.get(name)
            if self._granted is not None and name not in self._granted:
                return -1
        stop = position
        count, position = fields.uvarint(raw, position, end)
        if held is None or count < 2 or len(appended) + count > _PARTITIONS_MAX:
            return -1
        topics.append((start, stop, count - 1))
        for _ in range(count - 1):
            if position + 4 > end:
                return -1
            index = fields.number(raw, position, 4)
            size, position = fields.uvarint(raw, position + 4, end)
            partition = held.get(index)
            records_at = position
            position += size - 1
            # The tag that must be none comes after the records.
            if size < 1 or position >= end or raw[position] != 0 or partition is None:
                return -1
            if partition.asked_by == self._requests:
                return -1  # the request has the partition twice
            partition.asked_by = self._requests
            one = Appended()
            one.append = append = partition.check_fast(data, records_at, view[records_at:position], now_ms, version)
            one.base_offset = -1
            one.failure = None
            one.index = index
            one.partition = partition
            appended.append(one)
            batch = append.batch
            if append.decline != _DECLINE_NO or batch is None or batch.attributes & _TRANSACTIONAL:
                return -1
            position += 1
        if position >= end or raw[position] != 0:
            return -1
        return position + 1


def _checked(appended: list[Appended]) -> dict[PartitionTail, CheckedBatch]:
    """What is known of the batches of a request that is left to `produce.py`."""
    checked = {}
    for one in appended:
        batch = one.append.batch
        if batch is not None:
            checked[one.partition] = batch
    return checked


def _reply(frame: bytearray, topics: list[tuple[int, int, int]], appended: list[Appended]) -> bytearray:
    size = _REPLY_HEAD_SIZE + _REPLY_TAIL_SIZE + _UVARINT_SIZE_MAX + len(appended) * _PARTITION_SIZE
    for start, end, _ in topics:
        size += end - start + _UVARINT_SIZE_MAX + 1
    reply = bytearray(size)
    out = reply
    raw = frame
    fields.copy(out, 4, raw, 4, 4)  # the correlation id is in the same place
    position = fields.put_uvarint(out, _REPLY_HEAD_SIZE, len(topics) + 1)
    first = 0
    for start, end, count in topics:
        position = fields.copy(out, position, raw, start, end - start)
        position = fields.put_uvarint(out, position, count + 1)
        for number in range(first, first + count):
            one = appended[number]
            fields.put_number(out, position, one.index, 4)
            fields.put_number(out, position + 6, one.base_offset, 8)
            fields.put_number(out, position + 14, -1, 8)
            fields.put_number(out, position + 22, one.partition.log.log_start_offset, 8)
            out[position + 30] = 1  # no record errors; error code, message and tags are 0
            position += _PARTITION_SIZE
        first += count
        position += 1
    position += _REPLY_TAIL_SIZE
    fields.put_number(out, 0, position - 4, 4)
    del reply[position:]
    return reply
