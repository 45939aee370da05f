"""Decides on AllocateProducerIds: gives brokers blocks of producer ids; no id is ever given twice. Pure."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.brokers import check_broker_epoch
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerState
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.metadata_records import ProducerIdsRecord

BLOCK_SIZE = 1000
_PRODUCER_ID_MAX = 2**63 - 1


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest, now_ms: int
) -> Decision[AllocateProducerIdsResponse]:
    """The next block of producer ids, for a broker with its newest epoch."""
    check_broker_epoch(state, request.broker_id, request.broker_epoch)
    start = state.image.next_producer_id
    if start > _PRODUCER_ID_MAX - BLOCK_SIZE:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"there are no producer ids left after {start}")
    record = ProducerIdsRecord(
        broker_id=request.broker_id, broker_epoch=request.broker_epoch, next_producer_id=start + BLOCK_SIZE
    )
    return Decision(AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK_SIZE), [record])
