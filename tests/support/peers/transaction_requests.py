"""Raw requests of transactional producers, to any server in any version; responses as short tuples.

    raw = TransactionRequests(server.bootstrap)
    code, producer = raw.initialise("id")
    raw.add("id", producer, "topic", 0)

Requests with a retriable error (a coordinator that loads, a transaction that is being ended) are sent again, unless
`patient=False`: how often they occur differs from run to run.
"""

import time
from typing import Any

from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import HANG_S

from ottla.coordinator.contract import Producer
from ottla.ids import Uuid
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.wire.messages.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

NOT_NOW = (14, 15, 16, 51)
"""Retriable errors: the coordinator loads, is not available, has moved; the previous transaction is being ended."""
OLD, NEW = 0, 2
"""Requests as a producer of transaction version 0 or 1 sends them, and of version 2."""


class TransactionRequests:
    """One connection. Every method sends one request and returns its result."""

    def __init__(self, bootstrap: str) -> None:
        self.client = RawClient.to(bootstrap)

    def close(self) -> None:
        self.client.close()

    def _ask(self, request: Any, version: int, code_of: Any, patient: bool) -> Any:
        until = time.monotonic() + HANG_S
        while True:
            response = self.client.request(request, version)
            if not patient or code_of(response) not in NOT_NOW or time.monotonic() > until:
                return response

    def find_coordinator(self, name: str) -> None:
        """Have the coordinator's topic created, and wait until it serves `name`."""
        request = FindCoordinatorRequest(key=name, key_type=1)
        self._ask(request, 3, lambda response: response.error_code, True)
        self._ask(
            DescribeTransactionsRequest(transactional_ids=[name]), 0, lambda found: found.transaction_states[0].error_code, True
        )

    def initialise(
        self,
        name: str | None,
        expected: Producer | None = None,
        *,
        timeout_ms: int = 60_000,
        version: int = 5,
        patient: bool = True,
    ) -> tuple[int, Producer]:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms)
        if expected is not None:
            request.producer_id, request.producer_epoch = expected
        response = self._ask(request, version, lambda found: found.error_code, patient)
        return response.error_code, Producer(response.producer_id, response.producer_epoch)

    def add(
        self, name: str, producer: Producer, topic: str, *indexes: int, version: int = 3, patient: bool = True
    ) -> list[int]:
        """The codes of the partitions."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))],
        )
        response = self._ask(request, version, lambda found: _codes(found.results_by_topic_v3_and_below)[0], patient)
        return _codes(response.results_by_topic_v3_and_below)

    def add_as_broker(
        self,
        name: str,
        producer: Producer,
        topic: str,
        *indexes: int,
        verify_only: bool = False,
        version: int = 5,
        patient: bool = True,
    ) -> list[int]:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(indexes))],
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        response = self._ask(request, version, lambda found: _codes(found.results_by_transaction[0].topic_results)[0], patient)
        return _codes(response.results_by_transaction[0].topic_results)

    def add_offsets(self, name: str, producer: Producer, group: str, *, version: int = 4, patient: bool = True) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer.id, producer_epoch=producer.epoch, group_id=group
        )
        return int(self._ask(request, version, lambda found: found.error_code, patient).error_code)

    def end(
        self, name: str, producer: Producer, commit: bool, *, version: int = 5, patient: bool = True
    ) -> tuple[int, Producer]:
        request = EndTxnRequest(transactional_id=name, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit)
        response = self._ask(request, version, lambda found: found.error_code, patient)
        return response.error_code, Producer(response.producer_id, response.producer_epoch)

    def produce(
        self,
        name: str | None,
        producer: Producer,
        sequence: int,
        topic: str,
        *values: bytes,
        index: int = 0,
        version: int = 12,
        topic_id: Uuid | None = None,
        transactional: bool = True,
    ) -> tuple[int, int]:
        """(code, base offset)."""
        batch = make_batch(*values, producer=(producer.id, producer.epoch, sequence), transactional=transactional)
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=bytes(batch))])
        if topic_id is not None:
            data.topic_id = topic_id
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=[data])
        answer = self.client.request(request, version).responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    def describe(self, name: str) -> tuple[int, str, int, dict[str, list[int]]]:
        """(code, state, epoch, partitions by topic)."""
        request = DescribeTransactionsRequest(transactional_ids=[name])
        found = self.client.request(request, 0).transaction_states[0]
        topics = {each.topic: sorted(each.partitions) for each in found.topics}
        return found.error_code, found.transaction_state, found.producer_epoch, dict(sorted(topics.items()))

    def listed(self, *, version: int = 2, **filters: Any) -> tuple[int, list[tuple[str, str]], list[str]]:
        """(code, ids with their states, unknown filters)."""
        response = self.client.request(ListTransactionsRequest(**filters), version)
        states = sorted((each.transactional_id, each.transaction_state) for each in response.transaction_states)
        return response.error_code, states, sorted(response.unknown_state_filters)

    def write_marker(
        self,
        producer: Producer,
        commit: bool,
        topic: str,
        *indexes: int,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        version: int = 2,
    ) -> list[int]:
        marker = WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transaction_result=commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=list(indexes))],
        )
        response = self.client.request(WriteTxnMarkersRequest(markers=[marker]), version)
        results = response.markers[0].topics[0].partitions
        return [each.error_code for each in sorted(results, key=lambda found: found.partition_index)]


def _codes(topics: Any) -> list[int]:
    found = [each for topic in topics for each in topic.results_by_partition]
    return [each.partition_error_code for each in sorted(found, key=lambda found: found.partition_index)]
