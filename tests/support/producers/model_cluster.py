"""`ModelCluster`: partition logs with Kafka's rules for idempotent producers, and the metadata of two nodes.

Produce requests are executed by `execute`, which stores batches as a broker does and returns the response. Whether the response
reaches the producer is the test's choice. A broker remembers the last five batches of a producer. Of a producer that it does
not know it takes any sequence number.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ottla.client_core.machine import Request
from ottla.client_core.metadata import Metadata
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.records.batch import BatchView
from ottla.records.reader import read_records
from ottla.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

TOPIC = "t"
TOPIC_ID = Uuid(bytes(range(16)))
NODES = (1, 2)


class ModelPartition:
    """One partition's log and what it knows of producers."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.leader = NODES[0]
        self.epoch = 0
        self.producers: dict[int, tuple[int, deque[tuple[int, int, int]]]] = {}
        """By producer id: its epoch, and (first sequence, last sequence, offset) of its last five batches."""

    def append(self, data: Any) -> PartitionProduceResponse:
        view = BatchView(bytes(data))
        view.check()
        values = [record.value or b"" for record in read_records(view)]
        if view.producer_id >= 0:
            known = self._check(view, len(values))
            if known is not None:
                return known
        offset = len(self.log)
        self.log.extend(values)
        return PartitionProduceResponse(base_offset=offset, log_start_offset=0)

    def lose_last(self, producer_id: int) -> None:
        """Lose the last batch of a producer, which is the last in the log, as an unclean election does."""
        _, batches = self.producers[producer_id]
        first, last, offset = batches.pop()
        del self.log[offset : offset + last - first + 1]

    def forget(self, producer_id: int) -> None:
        """Know only the last batch of a producer, as a broker does that has rebuilt its state from a compacted log."""
        if producer_id in self.producers:
            epoch, batches = self.producers[producer_id]
            self.producers[producer_id] = (epoch, deque(list(batches)[-1:], maxlen=5))

    def _check(self, view: BatchView, count: int) -> PartitionProduceResponse | None:
        epoch, batches = self.producers.get(view.producer_id, (-1, deque(maxlen=5)))
        first, last = view.base_sequence, view.base_sequence + count - 1
        if view.producer_epoch < epoch:
            return PartitionProduceResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH)
        if view.producer_epoch > epoch:
            if epoch >= 0 and first != 0:
                return PartitionProduceResponse(error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, log_start_offset=0)
            batches = deque(maxlen=5)
        for known_first, known_last, offset in batches:
            if (known_first, known_last) == (first, last):
                return PartitionProduceResponse(base_offset=offset)
        if batches and first != batches[-1][1] + 1:
            return PartitionProduceResponse(error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, log_start_offset=0)
        batches.append((first, last, len(self.log)))
        self.producers[view.producer_id] = (view.producer_epoch, batches)
        return None


class ModelCluster:
    """Partitions of one topic on two nodes."""

    def __init__(self, partitions: int) -> None:
        self.partitions = [ModelPartition() for _ in range(partitions)]

    def move_leader(self, number: int) -> None:
        partition = self.partitions[number]
        partition.leader = NODES[1] if partition.leader == NODES[0] else NODES[0]
        partition.epoch += 1

    def execute(self, node: int, message: ProduceRequest, refusals: dict[int, int] | None = None) -> ProduceResponse:
        """Store what the request holds. `refusals`: by partition, an error instead."""
        answers = []
        for data in message.topic_data[0].partition_data:
            partition = self.partitions[data.index]
            code = (refusals or {}).get(data.index, 0)
            if not code and partition.leader != node:
                answer = PartitionProduceResponse(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                answer.current_leader = LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.epoch)
            elif code:
                answer = PartitionProduceResponse(error_code=code)
            else:
                answer = partition.append(data.records)
            answer.index = data.index
            answers.append(answer)
        return ProduceResponse(responses=[TopicProduceResponse(topic_id=TOPIC_ID, partition_responses=answers)])

    def metadata(self) -> MetadataResponse:
        """What a broker answers to a Metadata request."""
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node, host="localhost", port=9000 + node) for node in NODES],
            topics=[
                MetadataResponseTopic(
                    name=TOPIC,
                    topic_id=TOPIC_ID,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index, leader_id=each.leader, leader_epoch=each.epoch, replica_nodes=list(NODES)
                        )
                        for index, each in enumerate(self.partitions)
                    ],
                )
            ],
        )

    def teach(self, metadata: Metadata, now_ms: int) -> None:
        """Answer the metadata request that is due, if there is one."""
        for request in metadata.step(now_ms):
            metadata.answered(request, self.metadata(), 13, now_ms)


class InFlight:
    """Requests on their way to each node, in order."""

    def __init__(self) -> None:
        self.requests: dict[int, deque[Request]] = {node: deque() for node in NODES}

    def add(self, requests: list[Request]) -> None:
        for request in requests:
            self.requests[request.node].append(request)

    def __len__(self) -> int:
        return sum(map(len, self.requests.values()))
