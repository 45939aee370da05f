"""Misbehaving on purpose: what a test may make of a single request. Part of every node, used by none unless a test sets it.

`Dispatcher.intercept` is called with each request before its handler, and may return an `Interception`. It may also change the
request in place, and give `rewrite` to change the answer accordingly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ottla.broker.request import CloseConnection, Handled, Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.base import Message


class Interception(NamedTuple):
    """First `delay_s` passes; then the request is answered; then its reply is sent, or lost."""

    delay_s: float = 0.0
    """Requests behind it on the same connection wait too."""
    answer: Message | KafkaError | None = None
    """Instead of the handler's. An error becomes a response of the request's API."""
    is_handled: bool = True
    """Off: with no `answer` either, the handler is not called at all, and there is nothing to send."""
    rewrite: Callable[[Message], Message] | None = None
    """Called with the handler's answer; what it returns is sent in its place."""
    refuse: Callable[[KafkaError], Message] | None = None
    """With `rewrite`: what the handler's answer is if it raises an error, so that this too can be rewritten."""
    is_lost: bool = False
    """The connection is closed in place of the reply."""


Intercept = Callable[[RequestContext, Message], Interception | None]
"""None: let the request be."""


class InterceptedRequest(Pending):
    """The reply to a request that was interfered with."""

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
