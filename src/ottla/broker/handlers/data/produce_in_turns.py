"""Produce, for requests with several batches that have to be decompressed: one after the other, so that others have their turn.

A few kilobytes may decompress to tens of megabytes, and a request may have a thousand such batches. One takes a fifth of a
second at most; between them the loop goes on. No other request of the connection is handled until then, so that the
order of each partition is kept.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from ottla.broker.handlers.data import produce
from ottla.broker.request import CloseConnection, Pending, PendingTask, RequestContext, future_of
from ottla.records.layout import HEADER_SIZE
from ottla.records.validate import needs_decompression
from ottla.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData, TopicProduceResponse

if TYPE_CHECKING:
    from ottla.broker.handlers.data.produce_in_transaction import Verified
    from ottla.wire.base import Message

DECOMPRESSED_AT_ONCE_MAX = 2
"""So many batches of one request are decompressed without a pause."""


def is_expensive(context: RequestContext, topics: list[TopicProduceData]) -> bool:
    """Whether more batches have to be decompressed than others should wait for."""
    partitions, now_ms, count = context.services.partitions, context.services.world.clock.now_ms(), 0
    for topic in topics:
        for data in topic.partition_data:
            by_index = partitions.by_id.get(topic.topic_id) or partitions.by_name.get(topic.name, {})
            partition, records = by_index.get(data.index), cast("memoryview | None", data.records)
            if partition is not None and records is not None and len(records) >= HEADER_SIZE:
                count += needs_decompression(records, partition.log.config, now_ms)
    return count > DECOMPRESSED_AT_ONCE_MAX


class ProduceInTurns(PendingTask):
    """A produce request that is handled batch by batch."""

    __slots__ = ()

    holds_back = True


def hold(context: RequestContext, request: ProduceRequest, topics: list[TopicProduceData], verified: Verified) -> Pending:
    """Handle `topics` of a request, one batch in each turn of the loop."""
    return ProduceInTurns(_handle_in_turns(context, request, topics, verified))


async def _handle_in_turns(
    context: RequestContext, request: ProduceRequest, topics: list[TopicProduceData], verified: Verified
) -> ProduceResponse | None:
    failure: CloseConnection | None = None
    waits: list[asyncio.Future[Message | None]] = []
    for topic in topics:
        for data in topic.partition_data:
            await asyncio.sleep(0)
            one = ProduceRequest(transactional_id=request.transactional_id, acks=request.acks, timeout_ms=request.timeout_ms)
            one.topic_data.append(TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[data]))
            try:
                waits.append(future_of(produce.handle(context, one, verified)))
            except CloseConnection as closing:
                failure = failure or closing  # nothing is answered, but the others are appended all the same
    if failure is not None:
        raise failure
    return _merged([cast("ProduceResponse | None", await wait) for wait in waits])


def _merged(answers: list[ProduceResponse | None]) -> ProduceResponse | None:
    """One response with what several say; None where no answer is wanted."""
    whole: ProduceResponse | None = None
    for answer in answers:
        if answer is None:
            continue
        if whole is None:
            whole = ProduceResponse()
        for entry in answer.responses:
            last = whole.responses[-1] if whole.responses else None
            if last is None or (last.name, last.topic_id) != (entry.name, entry.topic_id):
                last = TopicProduceResponse(name=entry.name, topic_id=entry.topic_id)
                whole.responses.append(last)
            last.partition_responses += entry.partition_responses
        known = {node.node_id for node in whole.node_endpoints}
        whole.node_endpoints += [node for node in answer.node_endpoints if node.node_id not in known]
    return whole
