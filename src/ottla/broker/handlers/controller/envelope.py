"""Envelope: a client's request that its broker forwards. Handled as on this listener, with the client's principal and address.

NOT_CONTROLLER is an error of the envelope, so that the broker asks the next controller; all others are in the response inside.
There is only version 0.
"""

from __future__ import annotations

from ottla.broker.doors.envelope import address_text, wrap_response
from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.context import ConnectionInfo, Handled, PendingTask, RequestContext, future_of
from ottla.broker.requests.pipeline import load_module
from ottla.broker.requests.principal import decode_principal
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import APIS
from ottla.wire.base import Message, UnsupportedVersion
from ottla.wire.headers import parse_request, read_request_header
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse


def handle(context: RequestContext, request: EnvelopeRequest) -> Handled:
    check_cluster_action(context)
    inner, message = _open(context, request)
    return PendingTask(_answer(inner, message))


def refuse(context: RequestContext, request: EnvelopeRequest, error: KafkaError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.code)


def _open(context: RequestContext, envelope: EnvelopeRequest) -> tuple[RequestContext, Message]:
    """The request inside, and its context."""
    data = bytes(envelope.request_data)
    try:
        header, _ = read_request_header(data)
        api = APIS[header.request_api_key]
        if not api.is_forwardable or load_module(api.key, True) is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{api.name} is not an API that brokers forward to this controller")
        header, message = parse_request(data)
        host = address_text(envelope.client_host_address)
    except UnsupportedVersion as unknown:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"the forwarded request cannot be read: {unknown}") from None
    except DecodeError as damage:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"the forwarded request cannot be read: {damage}") from None
    try:
        principal = decode_principal(envelope.request_principal or b"")
    except DecodeError as damage:
        raise KafkaError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(damage)) from None
    outer = context.connection
    client = ConnectionInfo(outer.id, outer.listener, (host, outer.peer[1]), True, principal)
    inner = RequestContext(
        context.services,
        client,
        header.request_api_key,
        header.request_api_version,
        header.correlation_id,
        header.client_id,
        context.received_s,
    )
    return inner, message


async def _answer(inner: RequestContext, message: Message) -> EnvelopeResponse:
    module = load_module(inner.api_key, True)
    assert module is not None, "checked before"
    response: Message | None
    try:
        response = await future_of(module.handle(inner, message))
    except KafkaError as refused:
        if refused.code == ErrorCode.NOT_CONTROLLER:
            raise
        response = module.refuse(inner, message, refused)
    assert response is not None, "every forwardable API has a response"
    return wrap_response(response, inner.version, inner.correlation_id)
