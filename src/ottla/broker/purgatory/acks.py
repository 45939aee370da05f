"""Produce requests that wait until their records are as safe as was asked: on the replicas in sync, or on the disk.

A request is answered once all its partitions are: each either safe, or failed, or given up because the time is over.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ottla.broker.request import Pending
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.wire.messages.produce import PartitionProduceResponse, ProduceResponse


class AckWait:
    """One partition of a produce request that waits. `answer` says success until it is known to be otherwise."""

    __slots__ = ("_request", "answer", "end_offset", "is_for_all")

    def __init__(self, request: DelayedProduce, answer: PartitionProduceResponse, end_offset: int, is_for_all: bool) -> None:
        self._request = request
        self.answer = answer
        self.end_offset = end_offset
        """What has to be safe: everything below it."""
        self.is_for_all = is_for_all
        """Whether on all replicas in sync, rather than on this node's disk."""

    def settle(self, partition: Partition) -> bool:
        """Whether the waiting is over, well or badly; the request is told then."""
        if not partition.is_leading:
            refusal = partition.refusal()
            self.fail(refusal.code, str(refusal))
        elif (partition.log.high_watermark if self.is_for_all else partition.log.recovery_point) < self.end_offset:
            return False
        elif self.is_for_all and len(partition.isr) < partition.min_isr:
            self.fail(
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                f"the records were appended to {partition.name}, but it has only "
                f"{counted(len(partition.isr), 'replica')} in sync now",
            )
        self._request.settled(self)
        return True

    def fail(self, code: int, text: str) -> None:
        self.answer.error_code, self.answer.error_message = code, text


class DelayedProduce(Pending):
    """A produce request that waits, for no longer than `timeout_ms`.

    Its partitions are added one by one as they are appended to, and the last `add` is followed by `all_added`. A disk that
    fails under a later one can end the wait for an earlier one before that: the request is not answered then, since partitions
    yet to be added would count as safe.
    """

    __slots__ = ("_are_all_added", "_response", "_timer", "_waits")

    def __init__(self, response: ProduceResponse, timeout_ms: int) -> None:
        super().__init__()
        self._response = response
        self._are_all_added = False
        self._waits: dict[AckWait, Partition] = {}
        self._timer = asyncio.get_running_loop().call_later(max(timeout_ms, 0) / 1000, self._time_is_over)

    def add(self, partition: Partition, answer: PartitionProduceResponse, end_offset: int, is_for_all: bool) -> None:
        wait = AckWait(self, answer, end_offset, is_for_all)
        self._waits[wait] = partition
        partition.ack_waits[wait] = None

    def all_added(self) -> None:
        """Nothing more is added: the request is answered when nothing is waited for."""
        self._are_all_added = True
        self._complete_if_settled()

    def settled(self, wait: AckWait) -> None:
        del self._waits[wait]
        self._complete_if_settled()

    def _complete_if_settled(self) -> None:
        if self._are_all_added and not self._waits:
            self._timer.cancel()
            self.complete(self._response)

    def _time_is_over(self) -> None:
        for wait, partition in self._waits.items():
            wait.fail(
                ErrorCode.REQUEST_TIMED_OUT,
                f"the records were appended to {partition.name}, but are not as safe yet as was asked",
            )
        self._leave()
        self.complete(self._response)

    def _leave(self) -> None:
        for wait, partition in self._waits.items():
            partition.ack_waits.pop(wait, None)
        self._waits.clear()
        self._timer.cancel()

    def abandon(self) -> None:
        self._leave()
        super().abandon()
