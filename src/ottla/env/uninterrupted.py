"""Awaits what goes on if the caller is cancelled.

`asyncio.shield` does it too, but from Python 3.14 on it reports each failure that comes after the caller's cancellation to the
loop, with a traceback. Here such a failure is the business of what failed: it has told its log, or others wait for it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(awaitable: Awaitable[T]) -> T:
    """The result of `awaitable`, which a cancellation of the caller does not reach."""
    future = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait([future])
    except asyncio.CancelledError:
        future.add_done_callback(_retrieve)
        raise
    return future.result()


def _retrieve(future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        future.exception()
