"""BrokerHeartbeat: a broker extends its session, asks to be unfenced or to shut down, and reports failed directories.

v1: offline log directories. v2: cordoned log directories.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_own_controller
from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


def handle(context: RequestContext, request: BrokerHeartbeatRequest) -> Handled:
    check_cluster_action(context)
    return ask_own_controller(context, request)


def refuse(context: RequestContext, request: BrokerHeartbeatRequest, error: KafkaError) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=error.code)
