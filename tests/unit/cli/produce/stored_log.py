"""The broker's side of `ottla produce`, in memory: stores batches, and refuses those that a test names."""

from collections.abc import Callable

from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import ORDERS_ID

from ottla.errors.codes import ErrorCode
from ottla.records.batch import BatchView
from ottla.records.reader import read_records
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)

QUICK = ("--command-property", "retry.backoff.ms=1", "--command-property", "retry.backoff.max.ms=2")
Refuse = Callable[[int, BatchView], int | object]


class Log:
    """The broker's side: stores batches, except those that `refuse` answers with an error."""

    def __init__(self, node: FakeNode, refuse: Refuse = lambda partition, view: 0) -> None:
        self.refuse = refuse
        self.values: dict[int, list[bytes | None]] = {}
        self.views: list[BatchView] = []
        self.next_sequences: dict[int, int] = {}
        node.handlers[ProduceRequest] = self.produce
        node.handlers[InitProducerIdRequest] = lambda request, version: InitProducerIdResponse(producer_id=5, producer_epoch=0)

    def produce(self, request: ProduceRequest, version: int) -> object:
        answers = []
        for topic in request.topic_data:
            assert (topic.topic_id if version >= 13 else topic.name) == (ORDERS_ID if version >= 13 else "orders")
            for data in topic.partition_data:
                assert isinstance(data.records, memoryview)
                view = BatchView(bytes(data.records))
                view.check()
                self.views.append(view)
                verdict = self.refuse(data.index, view)
                if not isinstance(verdict, int):
                    return verdict
                answers.append(self._store(data.index, view) if verdict == 0 else _refused(data.index, verdict))
        if request.acks == 0:
            return None
        return ProduceResponse(responses=[TopicProduceResponse(name="orders", topic_id=ORDERS_ID, partition_responses=answers)])

    def _store(self, partition: int, view: BatchView) -> PartitionProduceResponse:
        values = self.values.setdefault(partition, [])
        expected = self.next_sequences.get(partition, 0)
        if view.base_sequence >= 0:
            if view.base_sequence != expected:
                code = (
                    ErrorCode.DUPLICATE_SEQUENCE_NUMBER
                    if view.base_sequence < expected
                    else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                )
                return _refused(partition, code)
            self.next_sequences[partition] = expected + view.count
        base = len(values)
        values += [record.value for record in read_records(view)]
        return PartitionProduceResponse(index=partition, base_offset=base)


def _refused(partition: int, code: int) -> PartitionProduceResponse:
    errors = [BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message="it has no key")] if code == 87 else []
    return PartitionProduceResponse(index=partition, error_code=code, record_errors=errors)


def numbered(count: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(count))
