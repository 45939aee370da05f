"""Every request can be refused, with every error, in every version: the refusal is a response that can be written."""

from random import Random
from typing import Any, cast

import pytest
from tests.support.hostile.hostile_requests import random_request

from ottla.broker.requests.apis import ON_BROKER, load_handler
from ottla.broker.requests.context import CloseConnection, ConnectionInfo, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.codec import decode_all, join_parts
from ottla.wire.headers import encode_response, parse_request, read_response_header

ERRORS = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("api_key", sorted(ON_BROKER), ids=lambda key: APIS[key].name)
def test_refusals_can_be_written(api_key: int) -> None:
    module = load_handler(api_key)
    assert module is not None
    api = APIS[api_key]
    connection = ConnectionInfo(1, "PLAINTEXT", ("127.0.0.1", 1))
    for version in range(api.oldest, api.advertised()[1] + 1):
        random = Random(version)
        for _ in range(10):
            frame = random_request(random, api_key, version)
            _, request = parse_request(bytearray(frame[4:]))
            # A refusal reads nothing from the node.
            context = RequestContext(cast(Any, None), connection, api_key, version, 1, None, 0.0)
            for code in ERRORS:
                try:
                    response = module.refuse(context, request, KafkaError(code, "it cannot be"))
                except CloseConnection:
                    assert api_key == ApiKey.PRODUCE
                    assert request.acks == 0
                    continue
                assert response is not None
                written = join_parts(encode_response(response, version, 1))[4:]
                decode_all(api.response_class, version, written, read_response_header(written, api_key, version)[1])
