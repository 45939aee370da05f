"""Produce requests answered from frame to frame: what calls `kernel_produce.py`, and what is too rare for it.

The pipeline hands `FrameAnswers` every produce request before it decodes it. What it declines has changed nothing: `produce.py`
handles it.

The size of a Produce request is that of its records, so it does not tell how long parsing takes: `has_many_elements` counts
topics and partitions without parsing. It walks from length to length, and stops after `MANY_ELEMENTS` elements, about 0.5 ms.
A frame that it cannot follow has few elements as far as it is concerned: the parser refuses it at the same place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ottla.broker.handlers.data.produce import TOPIC_IDS_SINCE, fail
from ottla.broker.purgatory.acks import DelayedFrame
from ottla.broker.requests.context import Declined, Pending
from ottla.broker.requests.parked import PARSED_ON_LOOP_BYTES
from ottla.errors import DecodeError
from ottla.ids import Uuid
from ottla.metadata.acls import Operation, ResourceType
from ottla.records.kernels import PURE_ASKED, load_variant
from ottla.wire.base import Part
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from ottla.wire.varint import decode_uvarint

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.requests.authorization import Grants
    from ottla.broker.services import Services

if TYPE_CHECKING or not PURE_ASKED:
    from ottla.broker.handlers.fast_path.kernel_produce import Appended, FastProduce, Unsettled
else:
    _kernel = load_variant("kernel_produce", pure=True, room="broker.handlers.fast_path")
    FastProduce, Unsettled = _kernel.FastProduce, _kernel.Unsettled


class FrameAnswers:
    """One node's, for produce requests."""

    __slots__ = ("_fast", "_now_ms")

    def __init__(self, services: Services) -> None:
        by_id = cast("dict[bytes, dict[int, Partition]]", services.partitions.by_id)  # a Uuid is 16 bytes, and nothing else
        self._fast = FastProduce(by_id, services.partitions.by_name)
        self._now_ms = services.world.clock.now_ms

    def answer(self, frame: bytearray, grants: Grants | None) -> list[Part] | ProduceResponse | Pending | Declined:
        """The reply, now or later; the response where a disk failed amid the request; or that the request was declined."""
        granted = None if grants is None else grants.granted(Operation.WRITE, ResourceType.TOPIC)
        reply = self._fast.answer(frame, self._now_ms(), granted)
        if isinstance(reply, bytearray):
            return [reply]
        if isinstance(reply, dict):
            return Declined(reply, len(frame) > PARSED_ON_LOOP_BYTES and has_many_elements(frame))
        version = int.from_bytes(frame[2:4], "big")
        if isinstance(reply, Unsettled):
            return DelayedFrame(reply, lambda failed: _response(version, failed.outcomes))
        return _response(version, reply)


def _response(version: int, topics: list[tuple[bytes, list[Appended]]]) -> ProduceResponse:
    """The response after a partition has failed: what became of each."""
    response = ProduceResponse()
    for name_or_id, appended in topics:
        topic = TopicProduceResponse()
        if version >= TOPIC_IDS_SINCE:
            topic.topic_id = Uuid(name_or_id)
        else:
            topic.name = name_or_id[decode_uvarint(name_or_id, 0)[1] :].decode()
        response.responses.append(topic)
        for one in appended:
            answer = PartitionProduceResponse(index=one.index, base_offset=one.base_offset)
            topic.partition_responses.append(answer)
            if one.failure is not None and one.base_offset < 0:
                fail(answer, one.failure, one.partition)
                continue
            answer.log_start_offset = one.partition.log.log_start_offset
            if one.failure is not None:  # it was appended, but is not on all replicas in sync
                answer.error_code, answer.error_message = one.failure.code, str(one.failure)
    return response


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
