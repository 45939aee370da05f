"""Waiting on the event loop for what other threads or later turns complete."""

from __future__ import annotations

import asyncio
from functools import partial

from ottla.client_core.producer.batch import ProducerBatch


def set_done(done: asyncio.Future[None]) -> None:
    """Complete a future, unless its caller has stopped waiting."""
    if not done.done():
        done.set_result(None)


async def wait_for_batch(batch: ProducerBatch) -> None:
    """Wait on the event loop until a batch is done."""
    if batch.is_done:
        return
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    batch.waiters.append(partial(set_done, done))
    await done
