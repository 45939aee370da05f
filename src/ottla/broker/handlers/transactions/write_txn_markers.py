"""WriteTxnMarkers: writes the end markers of transactions, for a coordinator or an operator who aborts a hanging one.

v2: transaction version of the marker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from ottla.broker.requests.context import Handled, Pending, RequestContext
from ottla.broker.runtime.coordinators.transaction_markers import Marker, MarkerWriter, Outcome
from ottla.coordinator.contract import Producer
from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

PORTION = PORTIONS_PER_TURN = 50
"""How many partitions of a marker, and how many markers, are written before other tasks run."""


def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> Handled:
    if not request.markers:
        return WriteTxnMarkersResponse()
    return MarkersPending(context.services.coordinators.transactions.markers, request.markers)


def refuse(context: RequestContext, request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    return _response({asked.producer_id: dict.fromkeys(_partitions(asked), error.code) for asked in request.markers})


class MarkersPending(Pending):
    """The response, parked until every marker is replicated or refused. Many markers are written over several loop turns."""

    __slots__ = ("_left", "_outcomes", "_waiting", "_writer")

    def __init__(self, writer: MarkerWriter, markers: list[WritableTxnMarker]) -> None:
        super().__init__()
        self._writer = writer
        self._left = _portions(markers)
        self._waiting = 1  # one for `_go_on` itself, so that a finished portion is not taken for all of them
        self._outcomes: dict[int, Outcome] = {asked.producer_id: {} for asked in markers}
        self._go_on()

    def _go_on(self) -> None:
        if self.is_done:
            return  # the caller's connection has ended; it sends the markers again
        for count, (marker, names) in enumerate(self._left, start=1):
            self._waiting += 1
            self._writer.write(marker, names, partial(self._written, marker.producer.id))
            if count == PORTIONS_PER_TURN or len(names) == PORTION:
                asyncio.get_running_loop().call_soon(self._go_on)
                return
        self._one_less()

    def _written(self, producer_id: int, outcome: Outcome) -> None:
        self._outcomes[producer_id].update(outcome)
        self._one_less()

    def _one_less(self) -> None:
        self._waiting -= 1
        if self._waiting == 0:
            self.complete(_response(self._outcomes))


def _portions(markers: list[WritableTxnMarker]) -> Iterator[tuple[Marker, list[TopicPartition]]]:
    """Each marker with up to `PORTION` of its partitions at a time, each partition once."""
    for asked in markers:
        marker = Marker(
            Producer(asked.producer_id, asked.producer_epoch),
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        names = list(dict.fromkeys(_partitions(asked)))
        for start in range(0, len(names), PORTION):
            yield marker, names[start : start + PORTION]


def _partitions(asked: WritableTxnMarker) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]


def _response(outcomes: dict[int, Outcome]) -> WriteTxnMarkersResponse:
    response = WriteTxnMarkersResponse()
    for producer_id, outcome in outcomes.items():
        by_topic: dict[str, list[WritableTxnMarkerPartitionResult]] = {}
        for (topic, index), code in outcome.items():
            by_topic.setdefault(topic, []).append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
        topics = [WritableTxnMarkerTopicResult(name=name, partitions=results) for name, results in by_topic.items()]
        response.markers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=topics))
    return response
