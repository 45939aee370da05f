"""Fetch on a controller's listener: the metadata log, for controllers and brokers that follow it. v18: high watermarks.

The replica of the metadata log answers it: `ottla.raft.requests.fetch`.
"""

from __future__ import annotations

from ottla.broker.request import Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.fetch import FetchRequest, FetchResponse


def handle(context: RequestContext, request: FetchRequest) -> Pending:
    return context.services.quorum.ask(request, context.version, context.connection.listener)


def refuse(context: RequestContext, request: FetchRequest, error: KafkaError) -> FetchResponse:
    return FetchResponse(error_code=error.code)
