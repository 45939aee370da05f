"""Tasks that nobody awaits."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ottla.broker.background import lasting, watched


def fails_first(times: int, enough: asyncio.Event, calls: list[int]) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        calls.append(len(calls))
        if len(calls) <= times:
            raise ZeroDivisionError("a bug")
        enough.set()
        await asyncio.sleep(3600)

    return work


def test_lasting_work_is_logged_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        enough, calls = asyncio.Event(), list[int]()
        task = lasting("counting", fails_first(2, enough, calls), 0.001)
        await asyncio.wait_for(enough.wait(), 30)
        assert len(calls) == 3
        assert [each.getMessage().split(":")[0] for each in caplog.records] == ["counting failed unexpectedly"] * 2
        assert "ZeroDivisionError" in caplog.text
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()

    asyncio.run(scenario())


def test_watched_work_is_logged_and_its_owner_hears_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async def work() -> None:
            raise ZeroDivisionError("a bug")

        heard: list[BaseException] = []
        task = watched("dividing", work(), heard.append)
        await asyncio.wait([task])
        await asyncio.sleep(0)
        assert [type(each) for each in heard] == [ZeroDivisionError]
        assert "dividing failed unexpectedly" in caplog.text

    asyncio.run(scenario())


def test_cancelled_work_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        task = watched("waiting", asyncio.sleep(3600), pytest.fail)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)
        assert caplog.text == ""

    asyncio.run(scenario())
