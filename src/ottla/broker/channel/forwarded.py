"""A client's request on its way from its broker to the active controller, and what the controller does with it.

In one process it goes as it is, to another node in an Envelope (`envelope.py`). Either way `answer_forwarded` takes it on the
controller's node: there the request is authorized, with the client's principal and address, and handled as on a controller's
listener. `LocalChannel` is the channel to the controller in this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.broker.requests.apis import load_handler
from ottla.broker.requests.authorization import admit, with_denied
from ottla.broker.requests.context import ConnectionInfo, RequestContext, future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Principal
from ottla.metadata.controller.decision import Asker
from ottla.wire.apis import APIS
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.services import NodeServices


class ForwardedRequest(NamedTuple):
    """A client's request, and who the client is. It keeps the client's version and correlation id."""

    message: Message
    version: int
    correlation_id: int
    client_id: str | None
    principal: Principal
    host: str

    @classmethod
    def of(cls, context: RequestContext, message: Message, version: int | None = None) -> ForwardedRequest:
        """`message` in the name of the client whose request has `context`; `version` if it is not that request itself."""
        connection = context.connection
        version = context.version if version is None else version
        return cls(message, version, context.correlation_id, context.client_id, connection.principal, connection.peer[0])


async def answer_forwarded(services: NodeServices, forwarded: ForwardedRequest, listener: str = "") -> Message:
    """The response of this node's controller; `listener` is the one that the request was forwarded through, if one was.

    Raises `KafkaError` NOT_CONTROLLER, so that the broker asks the next controller; all other errors are in the response.
    """
    request: Any = forwarded.message
    client = ConnectionInfo(0, listener, (forwarded.host, 0), True, forwarded.principal)
    context = RequestContext(
        services,  # type: ignore[arg-type]  # handlers on a controller's listener use only `NodeServices`
        client,
        request.KEY,
        forwarded.version,
        forwarded.correlation_id,
        forwarded.client_id,
        services.scheduler.now_s(),
    )
    module = load_handler(request.KEY, True)
    assert module is not None, "only what is served on controllers' listeners is forwarded"
    response: Message | None = None
    try:
        response = await future_of(admit(services.authorization, context, request, module.refuse, module.handle))
    except KafkaError as refused:
        if refused.code == ErrorCode.NOT_CONTROLLER:
            raise
        response = module.refuse(context, request, refused)
    response, failure = with_denied(context, request, module.refuse, response, None)
    if failure is not None:
        raise failure
    assert response is not None, "every forwardable API has a response"
    return response


class LocalChannel:
    """Passes requests to the controller of `services`. What is decided is not taken back, so it has no timeouts."""

    def __init__(self, services: NodeServices) -> None:
        self._services = services

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        return await self._services.controller.call(request, Asker(APIS[request.KEY].newest))

    async def forward(self, request: ForwardedRequest, timeout_ms: int | None = None) -> Any:
        return await answer_forwarded(self._services, request)
