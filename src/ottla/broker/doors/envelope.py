"""Envelope: a client's request inside of a request from its broker to the controller.

    request data    the client's request as its broker got it: header and body, without the frame's size
    principal       who the client is, in the encoding of `principal.py`
    host address    the client's address, 4 or 16 bytes
    response data   the response as the client would get it: header and body, without the frame's size

Pure functions. A request inside keeps the client's version and correlation id, so a broker of an older release can forward it.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.requests.principal import encode_principal
from ottla.errors import DecodeError
from ottla.wire.apis import APIS
from ottla.wire.base import Message, Part
from ottla.wire.codec import decoder, join_parts
from ottla.wire.headers import encode_request, encode_response, read_response_header
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from ottla.broker.requests.context import RequestContext

_SIZE_BYTES: Final = 4
_LOOPBACK: Final = b"\x7f\0\0\1"


def wrap_request(context: RequestContext, request: Message) -> EnvelopeRequest:
    """The envelope for a client's request."""
    frame = encode_request(request, context.version, context.correlation_id, context.client_id)
    return EnvelopeRequest(
        request_data=_unframed(frame),
        request_principal=encode_principal(context.connection.principal),
        client_host_address=packed_address(context.connection.peer[0]),
    )


def wrap_response(response: Message, version: int, correlation_id: int) -> EnvelopeResponse:
    """The envelope for the response to a forwarded request."""
    return EnvelopeResponse(response_data=_unframed(encode_response(response, version, correlation_id)))


def unwrap_response(context: RequestContext, envelope: EnvelopeResponse) -> Any:
    """The response to the client's request; `DecodeError` if it is none."""
    data = bytes(envelope.response_data or b"")
    correlation_id, body = read_response_header(data, context.api_key, context.version)
    if correlation_id != context.correlation_id:
        raise DecodeError(f"the envelope answers request {correlation_id}, not {context.correlation_id}", 0)
    return decoder(APIS[context.api_key].response_class, context.version)(data, body)[0]


def packed_address(host: str) -> bytes:
    """The bytes of an IP address; those of the loopback address for a peer that has none."""
    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:
        return _LOOPBACK


def address_text(packed: bytes) -> str:
    """The text of an IP address; `DecodeError` unless it has 4 or 16 bytes."""
    try:
        return str(ip_address(bytes(packed)))
    except ValueError:
        raise DecodeError(f"an address of {len(packed)} bytes is neither IPv4 nor IPv6", 0) from None


def _unframed(frame: list[Part]) -> bytes:
    return join_parts(frame)[_SIZE_BYTES:]
