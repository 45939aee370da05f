"""ElectLeaders: elects the leaders of partitions. The controller decides.

v0: only preferred leaders. v1: election type, preferred or unclean; an error code for the whole response.
"""

from __future__ import annotations

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

ERROR_CODE_SINCE = 1
"""In older versions a response has only the errors of its partitions."""


def handle(context: RequestContext, request: ElectLeadersRequest) -> Handled:
    return ask_controller(context, request, request.timeout_ms)


def refuse(context: RequestContext, request: ElectLeadersRequest, error: KafkaError) -> ElectLeadersResponse:
    response = ElectLeadersResponse()
    if context.version >= ERROR_CODE_SINCE:
        response.error_code = error.code
    for topic in request.topic_partitions or ():
        results = [
            PartitionResult(partition_id=index, error_code=error.code, error_message=str(error)) for index in topic.partitions
        ]
        response.replica_election_results.append(ReplicaElectionResult(topic=topic.topic, partition_result=results))
    return response
