"""What the checkers learn from the requests and answers of a client: when each was sent, and what was answered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.client_core.machine import Request
from ottla.errors import KafkaError
from ottla.sim.checkers.checker import Violation
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.sim.clients.client import Client


class ClientObserver:
    """`Observer` of one client's runner. Subclasses override `on_sent` and `on_answer`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.stage = client.stage
        self._sent: dict[Request, tuple[Message, float]] = {}

    def sent(self, request: Request, message: Message, version: int) -> None:
        self._sent[request] = (message, self.stage.now_s())
        try:
            self.on_sent(message)
        except Violation as violation:
            # Not raised: the client would take it for a failure of its machine, and the run would report that instead.
            asyncio.get_running_loop().call_exception_handler({"message": str(violation), "exception": violation})

    def answered(self, request: Request, response: Any, version: int) -> None:
        message, sent_s = self._sent.pop(request)
        self.on_answer(request, message, response, sent_s)

    def failed(self, request: Request, error: KafkaError) -> None:
        found = self._sent.pop(request, None)
        if found is not None:
            self.client.note("no answer", f"{type(found[0]).__name__.removesuffix('Request')} {type(error).__name__}")
            self.on_failure(found[0])

    def on_sent(self, message: Any) -> None:
        """A request is about to be sent."""

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        """`message`, sent at `sent_s`, was answered."""

    def on_failure(self, message: Any) -> None:
        """`message` was sent, and no answer will come."""
