"""EndQuorumEpoch: the leader of the metadata quorum resigns. v1: directory ids of the preferred successors.

The replica of the metadata log answers it: `ottla.raft.requests.end_quorum_epoch`.
"""

from __future__ import annotations

from ottla.broker.request import Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


def handle(context: RequestContext, request: EndQuorumEpochRequest) -> Pending:
    return context.services.quorum.ask(request, context.version, context.connection.listener)


def refuse(context: RequestContext, request: EndQuorumEpochRequest, error: KafkaError) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(error_code=error.code)
