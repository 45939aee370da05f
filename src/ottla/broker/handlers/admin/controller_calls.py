"""Passes requests to the controller and waits for its response, at most for the client's timeout.

On a broker's listener a request goes through the controller's channel, wherever the active controller is. On a controller's
listener this node's own controller decides, and answers NOT_CONTROLLER unless it is the active one.

The channel gives up a little before the client's timeout: it knows whether a controller is known at all and whether one can
have received the request, and its error must come before the general one of this module, and before the client stops waiting.

A client that has its answer can use the change through this node at once: the response waits until this node has published it.
The change is not taken back when the timeout is over: it is decided, and will be committed or lost with the node.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.channel.remote import READS
from ottla.broker.requests.context import PendingTask, RequestContext
from ottla.env.uninterrupted import uninterrupted
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.decision import Asker
from ottla.metadata.controller.mutation_quota import STRICT_SINCE
from ottla.wire.apis import APIS
from ottla.wire.base import Message

_CHANNEL_EARLIER_MS_MAX: Final = 1000
_CHANNEL_EARLIER_SHARE: Final = 0.1
"""How much earlier than the client's timeout the channel gives up: a share of it, at most so many ms."""


def ask_controller(context: RequestContext, request: Message, timeout_ms: int | None = None) -> PendingTask:
    """The controller's response, once this node has published its records; REQUEST_TIMED_OUT after `timeout_ms`."""
    return PendingTask(_ask(context, request, timeout_ms), may_give_up=True)


async def decided(context: RequestContext, request: Message, timeout_ms: int | None = None) -> Any:
    """The controller's response, once this node has published its records. Raises `KafkaError`."""
    services = context.services
    if context.connection.is_controller_listener:
        asker = asker_of(context)
        response = await services.controller.call(request, asker)
        if asker.mutations is not None:
            response.throttle_time_ms = asker.mutations.throttle_ms
    else:
        response = await services.channel.forward(
            ForwardedRequest.of(context, request), None if timeout_ms is None else _channel_ms(timeout_ms)
        )
    await services.loader.caught_up()
    return response


def ask_own_controller(context: RequestContext, request: Message) -> PendingTask:
    """The response of this node's controller to another node's request, once its records are committed."""
    return PendingTask(context.services.controller.call(request, asker_of(context)), may_give_up=True)


def asker_of(context: RequestContext) -> Asker:
    """Who asks, for the controller's decision."""
    connection, mutations = context.connection, None
    if context.services.throttling.rule is not None and (strict_since := STRICT_SINCE.get(context.api_key)) is not None:
        services, is_strict = context.services, context.version >= strict_since
        mutations = services.quotas.mutations_of(
            connection.principal.name, context.client_id, is_strict, services.scheduler.now_s()
        )
    return Asker(context.version, connection.principal, connection.peer[0], context.client_id, connection.listener, mutations)


def _channel_ms(timeout_ms: int) -> int:
    """How long the channel may try, of a client's timeout."""
    return timeout_ms - int(min(_CHANNEL_EARLIER_MS_MAX, timeout_ms * _CHANNEL_EARLIER_SHARE))


async def _ask(context: RequestContext, request: Message, timeout_ms: int | None) -> Any:
    # A timeout of 0 or less means no timeout: the client still wants its change.
    limit_ms = timeout_ms if timeout_ms and timeout_ms > 0 else None
    deciding = asyncio.ensure_future(decided(context, request, limit_ms))
    try:
        return await asyncio.wait_for(uninterrupted(deciding), None if limit_ms is None else limit_ms / 1000)
    except asyncio.CancelledError:
        deciding.cancel()
        raise
    except TimeoutError:
        deciding.add_done_callback(_retrieve)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, _timed_out(request, timeout_ms)) from None


def _timed_out(request: Message, timeout_ms: int | None) -> str:
    if request.KEY in READS:
        return f"the controller has not answered {APIS[request.KEY].name} within {timeout_ms} ms: ask again"
    return (
        f"the controller has not committed the change within {timeout_ms} ms. It may still take effect: look before "
        "asking again"
    )


def _retrieve(deciding: asyncio.Future[Any]) -> None:
    """No caller waits any more: marks a failure as retrieved, so that the loop does not log it."""
    if not deciding.cancelled():
        deciding.exception()
