"""Produce requests parked until their records are on all in-sync replicas (acks=all) or durable (flush.messages).

A request is answered when each of its partitions has reached that point, has failed, or has timed out. One event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ottla.broker.requests.context import Pending
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.wire.elements import MANY_ELEMENTS

if TYPE_CHECKING:
    from ottla.broker.handlers.fast_path.kernel_produce import Appended, Unsettled
    from ottla.broker.partitions.partition import Partition
    from ottla.wire.base import Part
    from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse


class AckWait:
    """One partition of a parked produce request. `answer` says success until `fail` sets an error."""

    __slots__ = ("_request", "answer", "end_offset", "is_for_all")

    def __init__(self, request: DelayedProduce, answer: PartitionProduceResponse, end_offset: int, is_for_all: bool) -> None:
        self._request = request
        self.answer = answer
        self.end_offset = end_offset
        """All records below this offset have to be replicated or durable."""
        self.is_for_all = is_for_all
        """True: wait for the high watermark (all in-sync replicas). False: wait for this node's disk."""

    def settle(self, partition: Partition) -> bool:
        """Whether the wait is over, with success or failure; if so, `DelayedProduce.settled` is called."""
        if not partition.is_leading:
            refusal = partition.refusal()
            self.fail(refusal.code, str(refusal))
        elif (partition.log.high_watermark if self.is_for_all else partition.log.recovery_point) < self.end_offset:
            return False
        elif self.is_for_all and partition.isr_size_max < partition.min_isr:
            self.fail(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"the records were appended to {partition.name}, but it has only "
                f"{counted(partition.isr_size_max, 'replica')} in sync now",
            )
        self._request.settled(self)
        return True

    def fail(self, code: int, text: str) -> None:
        self.answer.error_code, self.answer.error_message = code, text


class DelayedProduce(Pending):
    """A produce request parked for at most `timeout_ms`.

    Its partitions are added one by one as they are appended to, and the last `add` is followed by `all_added`. If the disk of a
    later partition fails, the wait for an earlier one can end before `all_added`. The request is not answered then, because
    partitions that are not added yet would count as acknowledged. For the same reason its time runs from `all_added` on.
    """

    __slots__ = ("_answer", "_are_all_added", "_timeout_s", "_timer", "_waits", "may_be_large")

    def __init__(self, response: ProduceResponse | None, timeout_ms: int) -> None:
        super().__init__()
        self._answer = response
        self._are_all_added = False
        self._waits: dict[AckWait, Partition] = {}
        self._timeout_s = max(timeout_ms, 0) / 1000
        self._timer: asyncio.TimerHandle | None = None
        self.may_be_large = False

    @property
    def is_waiting(self) -> bool:
        """Whether a partition waits."""
        return bool(self._waits)

    def add(self, partition: Partition, answer: PartitionProduceResponse, end_offset: int, is_for_all: bool) -> None:
        self._park(AckWait(self, answer, end_offset, is_for_all), partition)

    def _park(self, wait: AckWait, partition: Partition) -> None:
        self._waits[wait] = partition
        partition.ack_waits[wait] = None

    def all_added(self) -> None:
        """All partitions are added: answer the request as soon as none of them waits."""
        self._are_all_added = True
        self.may_be_large = len(self._waits) > MANY_ELEMENTS
        self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._time_is_over)
        self._complete_if_settled()

    def settled(self, wait: AckWait) -> None:
        if self._waits.pop(wait, None) is not None:  # else its request has gone, while its partition was settling others
            self._complete_if_settled()

    def _complete_if_settled(self) -> None:
        if self._are_all_added and not self._waits:
            self._leave()
            self._conclude()

    def _conclude(self) -> None:
        self.complete(self._answer)

    def _time_is_over(self) -> None:
        for wait, partition in self._waits.items():
            missing = "on all in-sync replicas" if wait.is_for_all else "flushed to disk"
            wait.fail(ErrorCode.REQUEST_TIMED_OUT, f"the records were appended to {partition.name}, but are not {missing} yet")
        self._leave()
        self._conclude()

    def _leave(self) -> None:
        for wait, partition in self._waits.items():
            partition.ack_waits.pop(wait, None)
        self._waits.clear()
        if self._timer is not None:
            self._timer.cancel()

    def abandon(self) -> None:
        self._leave()
        super().abandon()


class FrameAckWait(AckWait):
    """One partition of a parked produce request that was appended from its frame."""

    __slots__ = ("_one",)

    def __init__(self, request: DelayedFrame, one: Appended) -> None:
        self._request = request
        self._one = one
        self.end_offset = one.end_offset
        self.is_for_all = True

    def fail(self, code: int, text: str) -> None:
        self._one.failure = KafkaError(code, text)


class DelayedFrame(DelayedProduce):
    """A produce request that was appended from its frame, parked until other replicas have its records.

    Its reply is sent as it was built, unless a partition fails: `respond` then returns the response.
    """

    __slots__ = ("_respond", "_unsettled", "encoded")

    def __init__(self, unsettled: Unsettled, respond: Callable[[Unsettled], ProduceResponse]) -> None:
        super().__init__(None, unsettled.timeout_ms)
        self._respond = respond
        self._unsettled = unsettled
        self.encoded: list[Part] | None = None
        for one in unsettled.appended:
            partition = cast("Partition", one.partition)
            if one.failure is None and partition.log.high_watermark < one.end_offset:
                self._park(FrameAckWait(self, one), partition)
        self.all_added()

    def _conclude(self) -> None:
        if any(one.failure is not None for one in self._unsettled.appended):
            self.complete(self._respond(self._unsettled))
        else:
            self.encoded = [self._unsettled.reply]
            self.complete(None)
