"""Waiting for batches on the event loop."""

import asyncio

from ottla.client.producer.waiting import set_done


def test_a_caller_that_stopped_waiting_is_left_alone() -> None:
    async def body() -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.cancel()
        set_done(done)
        assert done.cancelled()

    asyncio.run(body())
