"""WriteTxnMarkers: a transaction coordinator, or an operator who aborts what hangs, ends transactions in partitions."""

from __future__ import annotations

from functools import partial

from ottla.broker.hosts.coordinators.transaction_markers import Marker, Outcome
from ottla.broker.request import Handled, Pending, RequestContext
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


def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> Handled:
    if not request.markers:
        return WriteTxnMarkersResponse()
    pending = MarkersPending(len(request.markers))
    writer = context.services.coordinators.transactions.markers
    for asked in request.markers:
        marker = Marker(
            Producer(asked.producer_id, asked.producer_epoch),
            asked.transaction_result,
            asked.coordinator_epoch,
            asked.transaction_version,
        )
        writer.write(marker, _partitions(asked), partial(pending.written, asked.producer_id))
    return pending


def refuse(context: RequestContext, request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    return _response({asked.producer_id: dict.fromkeys(_partitions(asked), error.code) for asked in request.markers})


class MarkersPending(Pending):
    """The reply, which waits until every marker is written and safe, or refused."""

    __slots__ = ("_outcomes", "_waiting")

    def __init__(self, count: int) -> None:
        super().__init__()
        self._waiting = count
        self._outcomes: dict[int, Outcome] = {}

    def written(self, producer_id: int, outcome: Outcome) -> None:
        self._outcomes.setdefault(producer_id, {}).update(outcome)
        self._waiting -= 1
        if self._waiting == 0:
            self.complete(_response(self._outcomes))


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
