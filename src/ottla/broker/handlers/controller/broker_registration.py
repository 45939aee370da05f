"""BrokerRegistration: a broker registers, fenced, and gets its epoch.

v1: brokers that still use ZooKeeper. v2: log directories. v3: the epoch before a clean shutdown. v4: features whose
lowest level is 0.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_own_controller
from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


def handle(context: RequestContext, request: BrokerRegistrationRequest) -> Handled:
    check_cluster_action(context)
    return ask_own_controller(context, request)


def refuse(context: RequestContext, request: BrokerRegistrationRequest, error: KafkaError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(error_code=error.code)
