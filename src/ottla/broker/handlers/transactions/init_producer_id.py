"""InitProducerId: a producer id for an idempotent producer, or id and epoch of a transactional one from its coordinator.

v3: the producer sends the id and epoch it has. v4: PRODUCER_FENCED; older clients get INVALID_PRODUCER_EPOCH. v6: two-phase
commit (KIP-939). It is unstable in Kafka 4.3, so it is served only with transaction.two.phase.commit.enable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.handlers.transactions.transaction_calls import code_for
from ottla.broker.requests.context import Handled, PendingTask, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.services import Services

FENCED_SINCE = 4
_NONE = -1


def handle(context: RequestContext, request: InitProducerIdRequest) -> Handled:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch come together, or not at all")
    if request.transactional_id is not None:
        if request.enable2_pc:
            context.require(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        return _initialise(context.services, request, request.transactional_id)
    grants = context.grants
    if grants is not None and not grants.allows_any(Operation.WRITE, ResourceType.TOPIC):
        context.require(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
    # Without a transactional id a producer always gets a new id, even if it sends its old one: nothing proves that it owns it.
    producer_id = context.services.producer_ids.take()
    if producer_id is None:
        return PendingTask(_wait(context.services))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _wait(services: Services) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await services.producer_ids.wait_and_take(), producer_epoch=0)


def _initialise(services: Services, request: InitProducerIdRequest, transactional_id: str) -> Handled:
    from ottla.broker.runtime.coordinators.transactions import NoProducerId  # late: few producers are transactional

    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty: name one, or leave it out")
    transactions = services.coordinators.transactions

    async def wait_and_initialise() -> InitProducerIdResponse:
        await transactions.wait_for_producer_id()
        response: InitProducerIdResponse = await transactions.call(
            transactional_id, lambda shard, reply, now: shard.initialise(request, reply, now)
        )
        return response

    try:
        return transactions.ask(transactional_id, lambda shard, reply, now: shard.initialise(request, reply, now))
    except NoProducerId:
        return PendingTask(wait_and_initialise())


def refuse(context: RequestContext, request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    code = code_for(error, context.version, FENCED_SINCE)
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)
