"""Assigns producer ids from blocks that the controller allocates.

Each block is one record in the metadata log, committed before the first of its ids is assigned: no id is assigned twice, by any
node, even if nodes are killed. The unused ids of a block are lost when its node stops.

One event loop. All callers that wait for a new block share one request for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.doors import ControllerDoor

logger = logging.getLogger("ottla.broker")


class ProducerIds:
    """The producer ids of one node. `broker_epoch` returns the epoch of its newest registration."""

    def __init__(self, node_id: int, door: ControllerDoor, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._door = door
        self._broker_epoch = broker_epoch
        self._next = self._end = 0
        self._renewal: asyncio.Task[None] | None = None

    def take(self) -> int | None:
        """A new producer id; None if a new block has to be allocated first (`wait_and_take`)."""
        if self._next >= self._end:
            return None
        self._next += 1
        return self._next - 1

    async def wait_and_take(self) -> int:
        """A new producer id. Raises COORDINATOR_LOAD_IN_PROGRESS if the controller allocates no block now."""
        while (producer_id := self.take()) is None:
            if self._renewal is None:
                self._renewal = asyncio.get_running_loop().create_task(self._renew())
            await asyncio.shield(self._renewal)  # others wait for it too
        return producer_id

    async def _renew(self) -> None:
        from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest  # late: not needed at a start

        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        try:
            block = await self._door.call(request)
        except KafkaError as refused:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"the controller allocated no producer ids: {refused}. Try again"
            ) from refused
        finally:
            self._renewal = None
        self._next = block.producer_id_start
        self._end = block.producer_id_start + block.producer_id_len
        logger.debug("producer ids %d to %d are allocated to this node", self._next, self._end - 1)
