"""UnregisterBroker: removes the registration of a broker that does not come back.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle(context: RequestContext, request: UnregisterBrokerRequest) -> Handled:
    return ask_controller(context, request)


def refuse(context: RequestContext, request: UnregisterBrokerRequest, error: KafkaError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error.code, error_message=str(error))
