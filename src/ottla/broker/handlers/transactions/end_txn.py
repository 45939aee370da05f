"""EndTxn: a producer commits or aborts its transaction. Answered when the decision is written; the markers follow.

v2: PRODUCER_FENCED; older clients get INVALID_PRODUCER_EPOCH. v5: transaction version 2: every transaction ends with an epoch
bump, and the response has the producer's next id and epoch.
"""

from __future__ import annotations

from ottla.broker.handlers.transactions.transaction_calls import code_for
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE = 2
EPOCH_BUMP_SINCE = 5
"""A producer that sends this version or a newer one uses transaction version 2."""


def handle(context: RequestContext, request: EndTxnRequest) -> Handled:
    if not request.transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
    client_version = 2 if context.version >= EPOCH_BUMP_SINCE else 0
    return context.services.coordinators.transactions.ask(
        request.transactional_id, lambda shard, reply, now: shard.end(request, client_version, reply, now)
    )


def refuse(context: RequestContext, request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    return EndTxnResponse(error_code=code_for(error, context.version, FENCED_SINCE))
