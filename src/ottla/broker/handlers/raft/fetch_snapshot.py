"""FetchSnapshot: a piece of a snapshot of the metadata log. v1: the replica's directory id.

The replica of the metadata log answers it: `ottla.raft.requests.fetch_snapshot`.
"""

from __future__ import annotations

from ottla.broker.request import Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


def handle(context: RequestContext, request: FetchSnapshotRequest) -> Pending:
    return context.services.quorum.ask(request, context.version, context.connection.listener)


def refuse(context: RequestContext, request: FetchSnapshotRequest, error: KafkaError) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=error.code)
