"""Passes requests to the controller and waits for its response, at most for the client's timeout.

The change is not taken back when the timeout is over: it is decided, and will be committed or lost with the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.broker.request import PendingTask, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Decision

R = TypeVar("R")


def ask_controller(
    context: RequestContext, decide: Callable[[Any, int], Decision[R]], timeout_ms: int | None = None
) -> PendingTask:
    """The response of `decide(state, now_ms)`, once its records are committed; REQUEST_TIMED_OUT after `timeout_ms`."""
    return PendingTask(_ask(context, decide, timeout_ms))


async def _ask(context: RequestContext, decide: Callable[[Any, int], Decision[R]], timeout_ms: int | None) -> Any:
    written = asyncio.ensure_future(context.services.controller.write(decide))
    try:
        # A timeout of 0 or less means no timeout: the client still wants its change.
        return await asyncio.wait_for(asyncio.shield(written), timeout_ms / 1000 if timeout_ms and timeout_ms > 0 else None)
    except TimeoutError:
        written.add_done_callback(asyncio.Future.exception)  # marks it as retrieved: no caller waits any more
        raise KafkaError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"the controller has not committed the change within {timeout_ms} ms. It may still take effect: look before "
            "asking again",
        ) from None
