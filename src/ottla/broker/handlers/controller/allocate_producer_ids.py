"""AllocateProducerIds: gives a broker a block of producer ids.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_own_controller
from ottla.broker.requests.authorization import check_cluster_action
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


def handle(context: RequestContext, request: AllocateProducerIdsRequest) -> Handled:
    check_cluster_action(context)
    return ask_own_controller(context, request)


def refuse(context: RequestContext, request: AllocateProducerIdsRequest, error: KafkaError) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error.code)
