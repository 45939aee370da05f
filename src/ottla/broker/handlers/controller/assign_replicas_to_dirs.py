"""AssignReplicasToDirs: a broker reports in which log directories it keeps its replicas.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_own_controller
from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


def handle(context: RequestContext, request: AssignReplicasToDirsRequest) -> Handled:
    check_cluster_action(context)
    return ask_own_controller(context, request)


def refuse(context: RequestContext, request: AssignReplicasToDirsRequest, error: KafkaError) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(error_code=error.code)
