"""`LocalChannel`: the channel to the controller in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.broker.channel.forwarded import ForwardedRequest, answer_forwarded
from ottla.metadata.controller.decision import Asker
from ottla.wire.apis import APIS
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.services import NodeServices


class LocalChannel:
    """Passes requests to the controller of `services`. What is decided is not taken back, so it has no timeouts."""

    def __init__(self, services: NodeServices) -> None:
        self._services = services

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        return await self._services.controller.call(request, Asker(APIS[request.KEY].newest))

    async def forward(self, request: ForwardedRequest, timeout_ms: int | None = None) -> Any:
        return await answer_forwarded(self._services, request)
