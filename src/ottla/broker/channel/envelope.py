"""Envelope: a client's request inside of a request from its broker to the controller.

    request data    the client's request as its broker got it: header and body, without the frame's size
    principal       who the client is, in Kafka's default encoding: int16 version, then `DefaultPrincipalData`
    host address    the client's address, 4 or 16 bytes
    response data   the response as the client would get it: header and body, without the frame's size

Pure functions. A request inside keeps the client's version and correlation id, so a broker of an older release can forward it.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any, Final

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.requests.apis import ON_CONTROLLER
from ottla.errors import DecodeError, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Principal
from ottla.wire.apis import APIS
from ottla.wire.base import Message, Part, UnsupportedVersion
from ottla.wire.codec import decode_all, decoder, encode_bytes, join_parts
from ottla.wire.headers import encode_request, encode_response, parse_request, read_request_header, read_response_header
from ottla.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.wire.messages.principal import DefaultPrincipalData

_PRINCIPAL_VERSION: Final = 0
_SIZE_BYTES: Final = 4
_LOOPBACK: Final = b"\x7f\0\0\1"


def wrap_request(forwarded: ForwardedRequest) -> EnvelopeRequest:
    """The envelope for a client's request."""
    frame = encode_request(forwarded.message, forwarded.version, forwarded.correlation_id, forwarded.client_id)
    return EnvelopeRequest(
        request_data=_unframed(frame),
        request_principal=encode_principal(forwarded.principal),
        client_host_address=packed_address(forwarded.host),
    )


def unwrap_request(envelope: EnvelopeRequest) -> ForwardedRequest:
    """The client's request in an envelope. Raises `KafkaError` if it cannot be read, or is none that brokers forward."""
    data = bytes(envelope.request_data)
    try:
        header, _ = read_request_header(data)
        api = APIS[header.request_api_key]
        if not api.is_forwardable or api.key not in ON_CONTROLLER:
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
    version, correlation_id = header.request_api_version, header.correlation_id
    return ForwardedRequest(message, version, correlation_id, header.client_id, principal, host)


def wrap_response(response: Message, version: int, correlation_id: int) -> EnvelopeResponse:
    """The envelope for the response to a forwarded request."""
    return EnvelopeResponse(response_data=_unframed(encode_response(response, version, correlation_id)))


def unwrap_response(forwarded: ForwardedRequest, envelope: EnvelopeResponse) -> Any:
    """The response to the client's request; `DecodeError` if it is none."""
    data = bytes(envelope.response_data or b"")
    api_key = forwarded.message.KEY
    correlation_id, body = read_response_header(data, api_key, forwarded.version)
    if correlation_id != forwarded.correlation_id:
        raise DecodeError(f"the envelope answers request {correlation_id}, not {forwarded.correlation_id}", 0)
    return decoder(APIS[api_key].response_class, forwarded.version)(data, body)[0]


def encode_principal(principal: Principal) -> bytes:
    """The principal as Envelope carries it."""
    data = DefaultPrincipalData(type=principal.type, name=principal.name, token_authenticated=principal.is_token_authenticated)
    return _PRINCIPAL_VERSION.to_bytes(2, "big") + encode_bytes(data, _PRINCIPAL_VERSION)


def decode_principal(data: bytes | bytearray | memoryview) -> Principal:
    """The principal that an Envelope carries; `DecodeError` if it is none in this encoding."""
    version = int.from_bytes(data[:2], "big")
    if len(data) < 2 or version != _PRINCIPAL_VERSION:
        text = f"a principal of {len(data)} bytes is not in version {_PRINCIPAL_VERSION} of Kafka's default encoding"
        raise DecodeError(text, 0)
    found = decode_all(DefaultPrincipalData, version, data, 2)
    return Principal(found.type, found.name, found.token_authenticated)


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
