"""Work that goes on when its caller is cancelled."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from ottla.env.uninterrupted import uninterrupted


def test_result_and_failure_are_the_callers() -> None:
    async def work(result: object) -> object:
        await asyncio.sleep(0)
        if isinstance(result, Exception):
            raise result
        return result

    assert asyncio.run(uninterrupted(work(1))) == 1
    with pytest.raises(LookupError, match="gone"):
        asyncio.run(uninterrupted(work(LookupError("gone"))))


@pytest.mark.parametrize("fails", [True, False])
def test_work_outlives_its_caller_and_a_failure_is_reported_to_nobody(fails: bool) -> None:
    unseen: list[Any] = []
    done: list[bool] = []

    async def work(go_on: asyncio.Event) -> None:
        await go_on.wait()
        done.append(True)
        if fails:
            raise LookupError

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: unseen.append(context))
        go_on = asyncio.Event()
        caller = asyncio.create_task(uninterrupted(work(go_on)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        assert done == []
        go_on.set()
        while not done:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        del caller
        gc.collect()

    asyncio.run(main())
    gc.collect()
    assert (done, unseen) == ([True], [])


def test_work_that_is_cancelled_itself_cancels_the_caller() -> None:
    async def main() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await uninterrupted(future)

    asyncio.run(main())
