"""Envelope: a client's request that its broker forwards. Handled as on this listener, with the client's principal and address.

NOT_CONTROLLER is an error of the envelope, so that the broker asks the next controller; all others are in the response inside.
There is only version 0.
"""

from __future__ import annotations

from ottla.broker.channel.envelope import unwrap_request, wrap_response
from ottla.broker.channel.forwarded import ForwardedRequest, answer_forwarded
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


def handle(context: RequestContext, request: EnvelopeRequest) -> Handled:
    return PendingTask(_answer(context, unwrap_request(request)))


def refuse(context: RequestContext, request: EnvelopeRequest, error: KafkaError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.code)


async def _answer(context: RequestContext, forwarded: ForwardedRequest) -> EnvelopeResponse:
    response = await answer_forwarded(context.services, forwarded, context.connection.listener)
    return wrap_response(response, forwarded.version, forwarded.correlation_id)
