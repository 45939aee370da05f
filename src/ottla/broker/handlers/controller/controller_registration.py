"""ControllerRegistration: a controller registers its endpoints and supported features.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_own_controller
from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


def handle(context: RequestContext, request: ControllerRegistrationRequest) -> Handled:
    check_cluster_action(context)
    return ask_own_controller(context, request)


def refuse(
    context: RequestContext, request: ControllerRegistrationRequest, error: KafkaError
) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(error_code=error.code, error_message=str(error))
