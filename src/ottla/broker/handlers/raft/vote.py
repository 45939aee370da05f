"""Vote: a controller asks for this voter's vote, or whether it would get it (pre-vote). v1: directory ids. v2: pre-votes.

The replica of the metadata log answers it: `ottla.raft.requests.vote`.
"""

from __future__ import annotations

from ottla.broker.request import Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.messages.vote import VoteRequest, VoteResponse


def handle(context: RequestContext, request: VoteRequest) -> Pending:
    return context.services.quorum.ask(request, context.version, context.connection.listener)


def refuse(context: RequestContext, request: VoteRequest, error: KafkaError) -> VoteResponse:
    return VoteResponse(error_code=error.code)
