"""EndTxn: a producer commits or aborts its transaction. Answered when that is decided for good; markers follow."""

from __future__ import annotations

from ottla.broker.handlers.transactions.transaction_calls import code_for
from ottla.broker.request import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE = 2
EPOCH_BUMP_SINCE = 5
"""From this version on a producer speaks transaction version 2: the answer has its next epoch."""


def handle(context: RequestContext, request: EndTxnRequest) -> Handled:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
    client_version = 2 if context.version >= EPOCH_BUMP_SINCE else 0
    return context.services.coordinators.transactions.ask(
        request.transactional_id, lambda shard, reply, now: shard.end(request, client_version, reply, now)
    )


def refuse(context: RequestContext, request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    return EndTxnResponse(error_code=code_for(error, context.version, FENCED_SINCE))
