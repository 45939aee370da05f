"""InitProducerId: an id for an idempotent producer. A transactional one is refused: transactions are not served yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.request import Handled, PendingTask, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from ottla.broker.services import Services

_NONE = -1


def handle(context: RequestContext, request: InitProducerIdRequest) -> Handled:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id and its epoch come together, or not at all")
    if request.transactional_id is not None:
        raise _refusal(request.transactional_id)
    # Without a transactional id, a producer that names the id it had is given another: nobody could tell it from a usurper.
    producer_id = context.services.producer_ids.take()
    if producer_id is None:
        return PendingTask(_wait(context.services))
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _wait(services: Services) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=await services.producer_ids.wait_and_take(), producer_epoch=0)


def refuse(context: RequestContext, request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=_NONE, producer_epoch=_NONE)


def _refusal(transactional_id: str) -> KafkaError:
    if not transactional_id:
        return KafkaError(ErrorCode.INVALID_REQUEST, "a transactional id must not be empty: name one, or leave it out")
    return KafkaError(
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        f"the producer with the transactional id {transactional_id!r} finds no coordinator: this broker does not serve "
        "transactions yet. Leave transactional.id out for an idempotent producer",
    )
