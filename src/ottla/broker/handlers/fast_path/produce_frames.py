"""Produce requests answered from frame to frame: what calls `kernel_produce.py`, and what is too rare for it.

The pipeline hands `FrameAnswers` every produce request before it decodes it. What it declines has changed nothing: `produce.py`
handles it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ottla.broker.handlers.data.produce import TOPIC_IDS_SINCE, fail
from ottla.broker.handlers.fast_path.produce_elements import has_many_elements
from ottla.broker.purgatory.acks import DelayedFrame
from ottla.broker.requests.context import Declined, Pending
from ottla.broker.requests.parked import PARSED_ON_LOOP_BYTES
from ottla.ids import Uuid
from ottla.metadata.acls import Operation, ResourceType
from ottla.records.kernels import PURE_ASKED, load_variant
from ottla.wire.base import Part
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
