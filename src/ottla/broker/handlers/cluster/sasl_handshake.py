"""SaslHandshake where no login is due: on a listener without SASL, or after a login whose session does not end.

`broker/requests/login.py` answers it where one is. v1: the messages of the mechanism are sent in SaslAuthenticate requests.
"""

from __future__ import annotations

from ottla.broker.requests.context import RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "this connection wants no login now")


def refuse(context: RequestContext, request: SaslHandshakeRequest, error: KafkaError) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=error.code)
