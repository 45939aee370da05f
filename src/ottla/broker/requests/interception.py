"""Fault injection for single requests: a test can delay, answer, rewrite or lose them. Off unless a test sets it.

`RequestPipeline.intercept` is called with each request before its handler, and may return an `Interception`. It may also
change the request in place, and set `rewrite` to change the response accordingly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.requests.context import CloseConnection, Handled, Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.base import Message


class Interception(NamedTuple):
    """What happens to one request: it waits for `delay_s`, then it is answered, then its reply is sent or lost."""

    delay_s: float = 0.0
    """Requests behind it on the same connection wait too."""
    answer: Message | KafkaError | None = None
    """Sent instead of the handler's response. An error becomes a response of the request's API."""
    is_handled: bool = True
    """False, without `answer`: the handler is not called, and no reply is sent."""
    rewrite: Callable[[Message], Message] | None = None
    """Called with the handler's response; its result is sent instead."""
    refuse: Callable[[KafkaError], Message] | None = None
    """Used with `rewrite`: makes a response from the handler's error, so that it can be rewritten too."""
    is_lost: bool = False
    """The connection is closed instead of sending the reply."""


Intercept = Callable[[RequestContext, Message], Interception | None]
"""Decides what happens to a request; None: it is handled as always."""


class InterceptedRequest(Pending):
    """The response to an intercepted request."""

    __slots__ = ("_handle", "_inner", "_interception", "_timer")

    holds_back = True

    def __init__(self, interception: Interception, handle: Callable[[], Handled]) -> None:
        super().__init__()
        self._interception = interception
        self._handle = handle
        self._inner: Pending | None = None
        self._timer: asyncio.TimerHandle | None = None
        if interception.delay_s > 0:
            self._timer = asyncio.get_running_loop().call_later(interception.delay_s, self._begin)
        else:
            self._begin()

    def answer_now(self) -> None:
        if self._inner is not None:
            self._inner.answer_now()

    def abandon(self) -> None:
        super().abandon()
        if self._timer is not None:
            self._timer.cancel()
        if self._inner is not None:
            self._inner.abandon()

    def _begin(self) -> None:
        answer = self._interception.answer
        if isinstance(answer, KafkaError):
            self._end(None, answer)
        elif answer is not None or not self._interception.is_handled:
            self._end(answer, None)
        else:
            try:
                handled = self._handle()
            except Exception as failure:
                self._end(None, failure)
                return
            if isinstance(handled, Pending):
                self._inner = handled
                handled.deliver_to(self._end)
            else:
                self._end(handled, None)

    def _end(self, response: Message | None, failure: BaseException | None) -> None:
        if self._interception.is_lost:
            self.fail(CloseConnection("a test asked for the connection to be lost"))
        elif failure is not None:
            refuse = self._interception.refuse
            if refuse is None or not isinstance(failure, KafkaError):
                self.fail(failure)
            else:
                self._end(refuse(failure), None)
        else:
            rewrite = self._interception.rewrite
            self.complete(rewrite(response) if rewrite is not None and response is not None else response)
