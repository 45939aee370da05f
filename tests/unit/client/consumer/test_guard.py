"""One thread, or one task, at a time."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.client.consumer.guard import TaskGuard, ThreadGuard
from ottla.client.consumer.sync import Consumer
from ottla.errors import ConcurrentUseError, IllegalStateError


def test_the_same_thread_may_enter_again_and_another_may_not() -> None:
    me = [1]
    threads: Any = SimpleNamespace(thread_id=lambda: me[0], process_id=lambda: 7)
    guard = ThreadGuard(threads)
    guard.enter("poll")
    guard.enter("seek")
    guard.leave()
    me[0] = 2
    with pytest.raises(ConcurrentUseError, match=r"commit\(\) in thread 2, while thread 1"):
        guard.enter("commit")
    me[0] = 1
    guard.leave()
    me[0] = 2
    guard.enter("commit")


def test_a_forked_process_is_told() -> None:
    process = [7]
    threads: Any = SimpleNamespace(thread_id=threading.get_ident, process_id=lambda: process[0])
    guard = ThreadGuard(threads)
    process[0] = 8
    with pytest.raises(IllegalStateError, match="forked"):
        guard.enter("poll")


@pytest.mark.asyncio
async def test_the_same_task_may_enter_again_and_another_may_not() -> None:
    guard = TaskGuard()
    guard.enter("poll")
    guard.enter("seek")
    guard.leave()

    async def other() -> None:
        guard.enter("commit")

    with pytest.raises(ConcurrentUseError, match="another task"):
        await asyncio.create_task(other())
    guard.leave()
    await asyncio.create_task(other())


def test_closed_consumer_names_the_call_of_the_caller() -> None:
    consumer: Consumer[bytes, bytes] = Consumer("localhost:9")
    consumer.close()
    with pytest.raises(IllegalStateError, match=r"^next\(\) on a consumer that is closed"):
        next(iter(consumer))
