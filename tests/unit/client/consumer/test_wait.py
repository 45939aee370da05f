"""Calls that wait: until something is true, until the time is up, until a wakeup."""

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from ottla.client.consumer.wait import Waiting
from ottla.env.real.clock import RealClock
from ottla.errors import ClientError, NetworkError, TimeoutError, WakeupError


def made() -> Waiting:
    return Waiting(lambda: None, 30.0, RealClock(), nullcontext)


@pytest.mark.asyncio
async def test_a_call_goes_on_when_its_condition_holds() -> None:
    waiting, done = made(), [False]
    call = asyncio.create_task(waiting.until(lambda: done[0], None))
    await asyncio.sleep(0)
    waiting.look()
    assert not call.done()
    done[0] = True
    waiting.look()
    assert await call


@pytest.mark.asyncio
async def test_the_time_limits_a_call_and_the_error_says_why() -> None:
    waiting = made()
    assert not await waiting.until(lambda: False, 0)
    assert not await waiting.until(lambda: False, 0.001)
    with pytest.raises(TimeoutError, match=r"nothing came within 0.001 s: lost"):
        await waiting.done(lambda: False, 0.001, "nothing came", lambda: NetworkError("lost"))
    assert waiting.limit_s(None) == 30.0


@pytest.mark.asyncio
async def test_a_wakeup_ends_the_call_that_waits_or_the_next() -> None:
    waiting = made()
    call = asyncio.create_task(waiting.until(lambda: False, None))
    await asyncio.sleep(0)
    waiting.wakeup()
    with pytest.raises(WakeupError):
        await call
    waiting.wakeup()
    with pytest.raises(WakeupError):
        await waiting.until(lambda: True, 0)
    waiting.wakeup()
    waiting.refuse_wakeups()
    assert await waiting.until(lambda: True, 0)
    waiting.wakeup()  # while the consumer closes, which it must not cut short
    assert await waiting.until(lambda: True, 0)


@pytest.mark.asyncio
async def test_a_bug_ends_every_call() -> None:
    waiting: Any = made()
    call = asyncio.create_task(waiting.until(lambda: False, None))
    await asyncio.sleep(0)
    waiting.fault = KeyError("oops")
    waiting.look()
    with pytest.raises(ClientError, match="oops"):
        await call


@pytest.mark.asyncio
async def test_a_cancelled_call_leaves_nothing_behind() -> None:
    waiting = made()
    call = asyncio.create_task(waiting.until(lambda: False, None))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert waiting._entries == []
