"""AlterPartition: the leader of partitions proposes a new ISR, or reports that it has recovered from an unclean election.

v3: the epoch of each broker in the ISR, so that a restarted broker does not get in with what it had before.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_own_controller
from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse


def handle(context: RequestContext, request: AlterPartitionRequest) -> Handled:
    check_cluster_action(context)
    return ask_own_controller(context, request)


def refuse(context: RequestContext, request: AlterPartitionRequest, error: KafkaError) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=error.code)
