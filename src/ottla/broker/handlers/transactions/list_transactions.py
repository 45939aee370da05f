"""ListTransactions: the transactional ids whose coordinator this node is.

v1: filter for the duration. v2: pattern for the transactional id, an RE2 regular expression.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.request import Handled, PendingTask, RequestContext
from ottla.coordinator.transactions.queries import Filters, list_transactions, states_named
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse


def handle(context: RequestContext, request: ListTransactionsRequest) -> Handled:
    return PendingTask(_list(context, request))


def refuse(context: RequestContext, request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


async def _list(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    transactions = context.services.coordinators.transactions
    if transactions.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the coordinator still reads __transaction_state: ask again")
    states, unknown = states_named(request.state_filters)
    filters = Filters(
        states, frozenset(request.producer_id_filters), request.duration_filter, _pattern(request.transactional_id_pattern)
    )
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    for hosted in list(transactions):
        response.transaction_states += await transactions.look_into(
            hosted, lambda shard, now: list_transactions(shard.table, filters, now)
        )
    return response


def _pattern(text: str | None) -> Callable[[str], bool] | None:
    if not text:
        return None
    import re2  # late: few requests have a pattern

    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(text, options)
    except re2.error as fault:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"{text!r} is not a valid RE2 regular expression: {fault}"
        ) from fault
    return lambda name: pattern.fullmatch(name) is not None
