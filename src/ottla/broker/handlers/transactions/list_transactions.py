"""ListTransactions: the transactional ids whose coordinator this node is.

v1: filter for the duration. v2: pattern for the transactional id, an RE2 regular expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.handlers.portions import PORTION
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.coordinator.groups.consumer.expressions import compiled
from ottla.coordinator.transactions.shard import Filters, list_transactions, states_named
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse, TransactionState

if TYPE_CHECKING:
    from ottla.coordinator.contract import Instant
    from ottla.coordinator.groups.consumer.expressions import compiled
from ottla.coordinator.transactions.shard import TransactionShard


def handle(context: RequestContext, request: ListTransactionsRequest) -> Handled:
    return PendingTask(_list(context, request))


def refuse(context: RequestContext, request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)


async def _list(context: RequestContext, request: ListTransactionsRequest) -> ListTransactionsResponse:
    transactions = context.services.coordinators.transactions
    if transactions.is_loading:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the coordinator still reads __transaction_state: ask again")
    states, unknown = states_named(request.state_filters)
    pauses = Pauses(context)
    pattern = await _pattern(pauses, request.transactional_id_pattern)
    filters = Filters(states, frozenset(request.producer_id_filters), request.duration_filter, pattern)
    response = ListTransactionsResponse(unknown_state_filters=unknown)

    def listed(ids: Sequence[str], shard: TransactionShard, now: Instant) -> list[TransactionState]:
        return list_transactions(shard.table, ids, filters, now)

    for hosted in list(transactions):
        ids = list(hosted.shard.table.by_id)
        for start in range(0, len(ids), PORTION):
            portion = [
                name
                for name in ids[start : start + PORTION]
                if context.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name, is_silent=True)
            ]
            response.transaction_states += await transactions.look_into(hosted, partial(listed, portion))
            await pauses.here()
    return response


async def _pattern(pauses: Pauses, text: str | None) -> Callable[[str], bool] | None:
    if not text:
        return None
    pattern = await pauses.off_loop(lambda: compiled(text))
    return lambda name: pattern.fullmatch(name) is not None
