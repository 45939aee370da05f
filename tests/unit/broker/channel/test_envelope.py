"""Requests of clients in envelopes: principal, address, header and body."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.nodes.images import context_of, image_of

from ottla.broker.channel.envelope import (
    address_text,
    decode_principal,
    encode_principal,
    packed_address,
    unwrap_response,
    wrap_request,
    wrap_response,
)
from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.errors import DecodeError
from ottla.ids import ANONYMOUS, Principal
from ottla.wire.api_table import ApiKey
from ottla.wire.headers import parse_request
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.envelope import EnvelopeResponse

REQUEST = DeleteTopicsRequest(topic_names=["t"], timeout_ms=5)


def forwarded(version: int = 5) -> ForwardedRequest:
    context = context_of(image_of([], {}), ApiKey.DELETE_TOPICS, version)
    context.connection.principal = Principal("User", "alice")
    return ForwardedRequest.of(context, REQUEST)


@pytest.mark.parametrize("version", [1, 3, 4, 5], ids=lambda version: f"v{version}")
def test_request_inside_keeps_version_and_header(version: int) -> None:
    envelope = wrap_request(forwarded(version))
    header, message = parse_request(bytes(envelope.request_data))
    assert (header.request_api_key, header.request_api_version) == (ApiKey.DELETE_TOPICS, version)
    assert (header.correlation_id, header.client_id) == (1, "test")
    assert message == REQUEST
    assert decode_principal(envelope.request_principal or b"") == Principal("User", "alice")
    assert envelope.client_host_address == b"\x7f\0\0\1"


def test_request_data_is_a_frame_without_its_size() -> None:
    data = bytes(wrap_request(forwarded(1)).request_data)
    assert data == b"\0\x14\0\1\0\0\0\1\0\4test" + b"\0\0\0\1\0\1t" + b"\0\0\0\5"


@pytest.mark.parametrize("version", [1, 5])
def test_response_inside_is_found_again(version: int) -> None:
    response = DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", error_code=3)])
    assert unwrap_response(forwarded(version), wrap_response(response, version, 1)).responses[0].error_code == 3


@pytest.mark.parametrize("data", [None, b"", b"\0\0\0\1", b"\0\0\0\2\0\0\0\0\0\0\0\0\0"])
def test_damaged_response_is_a_decode_error(data: bytes | None) -> None:
    with pytest.raises(DecodeError):
        unwrap_response(forwarded(1), EnvelopeResponse(response_data=data))


@pytest.mark.parametrize(
    ("host", "packed", "text"),
    [
        ("10.1.2.3", b"\x0a\1\2\3", "10.1.2.3"),
        ("::1", bytes(15) + b"\1", "::1"),
        ("fe80::2%eth0", b"\xfe\x80" + bytes(13) + b"\2", "fe80::2"),
        ("machine-1", b"\x7f\0\0\1", "127.0.0.1"),
    ],
)
def test_addresses(host: str, packed: bytes, text: str) -> None:
    assert packed_address(host) == packed
    assert address_text(packed) == text


def test_address_of_another_length_is_refused() -> None:
    with pytest.raises(DecodeError):
        address_text(b"\1\2\3")


NAMES = st.text(max_size=200)


@given(NAMES, NAMES, st.booleans())
def test_round_trip(type: str, name: str, is_token_authenticated: bool) -> None:
    principal = Principal(type, name, is_token_authenticated)
    assert decode_principal(encode_principal(principal)) == principal


def test_encoding_of_the_anonymous_user() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert encode_principal(ANONYMOUS) == b"\0\0" + b"\x05User" + b"\x0aANONYMOUS" + b"\0" + b"\0"


@pytest.mark.parametrize("damaged", [b"", b"\0", b"\0\1\5User\2a\0\0", b"\0\0\5Use", encode_principal(ANONYMOUS) + b"x"])
def test_damage_is_a_decode_error(damaged: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_principal(damaged)
