"""`LocalDoor`: the door to the controller in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.broker.doors.own_controller import answer_of
from ottla.wire.apis import APIS
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.hosts.controller import ControllerHost
    from ottla.broker.requests.context import RequestContext


class LocalDoor:
    """Passes requests to `controller`. A timeout is the caller's business: a decided change is never taken back."""

    def __init__(self, controller: ControllerHost) -> None:
        self._controller = controller

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        return await answer_of(self._controller, request, APIS[request.KEY].newest)

    async def forward(self, context: RequestContext, request: Message, timeout_ms: int | None = None) -> Any:
        return await answer_of(self._controller, request, context.version)
