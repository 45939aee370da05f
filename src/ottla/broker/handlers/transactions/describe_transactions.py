"""DescribeTransactions: the producer and the open or last transaction of transactional ids.

An id that is named again is described again, as in Kafka, up to `REPEATED_PARTITIONS_MAX` partitions in all; after that it is
left out. Long responses are made in slices.

There is only version 0.
"""

from __future__ import annotations

from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.coordinator.transactions.shard import describe
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

REPEATED_PARTITIONS_MAX = 10_000


def handle(context: RequestContext, request: DescribeTransactionsRequest) -> Handled:
    return PendingTask(_describe_all(context, request))


def refuse(context: RequestContext, request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(transaction_states=[_failed(name, error) for name in request.transactional_ids])


async def _describe_all(context: RequestContext, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    response, pauses = DescribeTransactionsResponse(), Pauses(context)
    described: dict[str, TransactionState] = {}
    repeated_left = REPEATED_PARTITIONS_MAX
    for name in request.transactional_ids:
        state = described.get(name)
        if state is None:
            state = described[name] = await _describe(context, name)
            await pauses.here()
        else:
            repeated_left -= 1 + sum(len(topic.partitions) for topic in state.topics)
            if repeated_left < 0:
                continue
        response.transaction_states.append(state)
    return response


async def _describe(context: RequestContext, name: str) -> TransactionState:
    try:
        context.require(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name)
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty")
        state: TransactionState = await context.services.coordinators.transactions.look(
            name, lambda shard, now: describe(shard.table, name)
        )
        state.topics = [
            each for each in state.topics if context.allows(Operation.DESCRIBE, ResourceType.TOPIC, each.topic, is_silent=True)
        ]
        return state
    except KafkaError as error:
        return _failed(name, error)


def _failed(name: str, error: KafkaError) -> TransactionState:
    return TransactionState(transactional_id=name, error_code=error.code)
