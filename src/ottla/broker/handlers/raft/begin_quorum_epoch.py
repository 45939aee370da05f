"""BeginQuorumEpoch: the leader of the metadata quorum announces itself. v1: the voter's key and the leader's endpoints.

The replica of the metadata log answers it: `ottla.raft.requests.begin_quorum_epoch`.
"""

from __future__ import annotations

from ottla.broker.request import Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


def handle(context: RequestContext, request: BeginQuorumEpochRequest) -> Pending:
    return context.services.quorum.ask(request, context.version, context.connection.listener)


def refuse(context: RequestContext, request: BeginQuorumEpochRequest, error: KafkaError) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error_code=error.code)
