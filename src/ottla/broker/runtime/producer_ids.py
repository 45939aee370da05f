"""Assigns producer ids from blocks that the controller allocates.

Each block is one record in the metadata log, committed before the first of its ids is assigned: no id is assigned twice, by any
node, even if nodes are killed. The unused ids of a block are lost when its node stops.

The next block is requested when nine tenths of the current one are assigned, so that producers can start while no controller
answers. Where that was not early enough, they wait for `WAIT_S` at most and get a retriable error; the request goes on.

One event loop. All callers that wait for a new block share one request for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest

if TYPE_CHECKING:
    from ottla.broker.channel import ControllerChannel

logger = logging.getLogger("ottla.broker")

WAIT_S: Final = 5.0
_ASSIGNED_TENTHS: Final = 9
"""How many tenths of a block are assigned before the next one is requested."""


class ProducerIds:
    """The producer ids of one node. `broker_epoch` returns the epoch of its newest registration."""

    def __init__(self, node_id: int, channel: ControllerChannel, broker_epoch: Callable[[], int]) -> None:
        self._node_id = node_id
        self._channel = channel
        self._broker_epoch = broker_epoch
        self._next = self._end = self._renewed_from = 0
        self._later: deque[range] = deque()
        """Blocks for when the current one is used up."""
        self._renewal: asyncio.Task[None] | None = None

    def take(self) -> int | None:
        """A new producer id; None if a new block has to be allocated first (`wait_and_take`)."""
        if self._next >= self._end and not self._begin_block():
            return None
        self._next += 1
        if self._next >= self._renewed_from and not self._later:
            self._renew()
        return self._next - 1

    async def wait_and_take(self) -> int:
        """A new producer id. Raises COORDINATOR_LOAD_IN_PROGRESS if the controller allocates no block in time."""
        while (producer_id := self.take()) is None:
            renewal = self._renew()
            await asyncio.wait([renewal], timeout=WAIT_S)  # others wait for it too
            if not renewal.done():
                raise KafkaError(
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    f"the controller has allocated no producer ids within {WAIT_S:g} s: try again",
                )
            renewal.result()
        return producer_id

    def _begin_block(self) -> bool:
        if not self._later:
            return False
        block = self._later.popleft()
        self._next, self._end = block.start, block.stop
        self._renewed_from = block.start + len(block) * _ASSIGNED_TENTHS // 10
        return True

    def _renew(self) -> asyncio.Task[None]:
        """The request for another block; there is one at a time."""
        if self._renewal is None:
            self._renewal = asyncio.get_running_loop().create_task(self._request_block())
            self._renewal.add_done_callback(_retrieve)
        return self._renewal

    async def _request_block(self) -> None:
        request = AllocateProducerIdsRequest(broker_id=self._node_id, broker_epoch=self._broker_epoch())
        try:
            block = await self._channel.call(request)
        except KafkaError as refused:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"the controller allocated no producer ids: {refused}. Try again"
            ) from refused
        finally:
            self._renewal = None
        self._later.append(range(block.producer_id_start, block.producer_id_start + block.producer_id_len))
        logger.debug("producer ids from %d on are allocated to this node: %d", block.producer_id_start, block.producer_id_len)


def _retrieve(renewal: asyncio.Task[None]) -> None:
    """Marks a failure as retrieved: where no caller waits for the block, the next `take` requests it again."""
    if not renewal.cancelled():
        renewal.exception()
