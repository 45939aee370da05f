"""Asks the controller for changes of ISRs: AlterPartition requests, one under way at a time, for all partitions that want one.

A partition has at most one pending change (`in_sync.Change`), and counts its replicas as in sync until the controller has
answered. An answer ends it: made (`isr_decided`), or refused for certain (`isr_refused`). Whatever else the controller says,
the metadata will say more: the change stays pending until a newer state of the partition arrives. A request without an answer
is sent again. One event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.errors import OttlaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import Uuid
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel
    from ottla.broker.partitions.in_sync import Change
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.replication.replication import IsrCounters

logger = logging.getLogger("ottla.replication")

_RETRY_S: Final = 0.1
_TIMEOUT_MS: Final = 10_000
_REFUSED: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST})
"""The controller has looked at the change and not made it."""
_SUPERSEDED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.INVALID_UPDATE_VERSION,
    }
)
"""The controller's state of the partition is newer than this node's: the metadata brings it."""


class IsrChanges:
    """The ISR changes of broker `node_id`; `broker_epoch` returns the epoch of its newest registration."""

    def __init__(
        self, node_id: int, channel: ControllerChannel, broker_epoch: Callable[[], int], counters: IsrCounters
    ) -> None:
        self.counters = counters
        self._node_id = node_id
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._waiting: dict[Partition, None] = {}
        self._asking: asyncio.Task[None] | None = None

    def ask(self, partition: Partition) -> None:
        """The partition has a new pending change."""
        self._waiting[partition] = None
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask_all())

    async def stop(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask_all(self) -> None:
        is_logged = False
        try:
            while self._waiting:
                asked = self._take()
                if not asked:
                    continue
                try:
                    response = await self._channel.call(self._request(asked), _TIMEOUT_MS)
                    is_again = self._take_answers(asked, response)
                except Exception as refused:
                    # The disk of the controller in this process may have failed. After a bug a pending change must not stay.
                    is_bug = not isinstance(refused, OttlaError)
                    level = logging.ERROR if is_bug else logging.DEBUG if is_logged else logging.WARNING
                    logger.log(
                        level, "the controller did not change %d ISRs, asking again: %s", len(asked), refused, exc_info=is_bug
                    )
                    is_logged = is_again = True
                    self._waiting.update(dict.fromkeys(asked))
                if is_again:
                    await asyncio.sleep(_RETRY_S)
        finally:
            self._asking = None

    def _take(self) -> dict[Partition, Change]:
        """The pending changes to ask for now; partitions that have none any more are left out."""
        waiting, self._waiting = self._waiting, {}
        found: dict[Partition, Change] = {}
        for partition in waiting:
            if partition.in_sync is not None and partition.in_sync.pending is not None:
                found[partition] = partition.in_sync.pending
        return found

    def _request(self, asked: dict[Partition, Change]) -> AlterPartitionRequest:
        broker_epoch = self._broker_epoch()
        topics: dict[Uuid, AlterPartitionRequestTopicData] = {}
        for partition, change in asked.items():
            states = [
                BrokerState(broker_id=each, broker_epoch=broker_epoch if each == self._node_id else epoch)
                for each, epoch in zip(change.isr, change.broker_epochs, strict=True)
            ]
            topic = topics.setdefault(partition.topic_id, AlterPartitionRequestTopicData(topic_id=partition.topic_id))
            topic.partitions.append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.index,
                    leader_epoch=change.leader_epoch,
                    new_isr_with_epochs=states,
                    partition_epoch=change.partition_epoch,
                )
            )
        return AlterPartitionRequest(broker_id=self._node_id, broker_epoch=broker_epoch, topics=list(topics.values()))

    def _take_answers(self, asked: dict[Partition, Change], response: AlterPartitionResponse) -> bool:
        """Give each partition its answer; True if some have to be asked for again."""
        answers = {(topic.topic_id, each.partition_index): each for topic in response.topics for each in topic.partitions}
        is_again = False
        for partition, change in asked.items():
            answer = answers.get((partition.topic_id, partition.index))
            if answer is None or not self._take_answer(partition, change, answer):
                self._waiting[partition] = None
                is_again = True
        return is_again

    def _take_answer(self, partition: Partition, change: Change, answer: AlterPartitionResponsePartitionData) -> bool:
        code = answer.error_code
        if code == ErrorCode.NONE:
            partition.isr_decided(tuple(answer.isr), answer.leader_epoch, answer.partition_epoch)
            if answer.leader_epoch == partition.leader_epoch and answer.partition_epoch == partition.partition_epoch:
                partition.isr_refused(change)  # it was so already
            if answer.partition_epoch > change.partition_epoch:
                self._count(change)
                # Not `partition.isr`: the metadata may have said so before this answer.
                logger.info("%s: the ISR is %s now, it was %s", partition.name, answer.isr, list(change.before))
            return True
        self.counters.failures += 1
        logger.info("%s: the controller did not change the ISR to %s: %s", partition.name, list(change.isr), error_name(code))
        if code in _REFUSED:
            partition.isr_refused(change)
        return code in _REFUSED or code in _SUPERSEDED

    def _count(self, change: Change) -> None:
        if change.is_expansion:
            self.counters.expands += 1
        else:
            self.counters.shrinks += 1
