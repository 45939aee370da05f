"""SaslAuthenticate without a handshake before it. `broker/requests/login.py` answers those that belong to a login.

v1: how long the session lasts.
"""

from __future__ import annotations

from ottla.broker.requests.context import RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    raise KafkaError(ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate must follow SaslHandshake")


def refuse(context: RequestContext, request: SaslAuthenticateRequest, error: KafkaError) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=error.code, error_message=str(error))
