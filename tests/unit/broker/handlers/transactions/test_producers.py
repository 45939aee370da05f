"""InitProducerId without a block, and DescribeProducers."""

from tests.support.logs.batches import T0
from tests.support.nodes.data_node import DataNode, append, end_transaction

from ottla.broker.handlers.transactions import describe_producers, init_producer_id
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_producers import DescribeProducersRequest, PartitionResponse, ProducerState, TopicRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

REFUSED = (-1, -1)


class Ids:
    """A block that is used up, then a new one; or none at all."""

    def __init__(self, refuses: bool = False) -> None:
        self.left = [7]
        self.refuses = refuses

    def take(self) -> int | None:
        return self.left.pop(0) if self.left else None

    async def wait_and_take(self) -> int:
        if self.refuses:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "none now")
        self.left = [1001]
        return 1000


def ask(ids: Ids, transactional_id: str | None = None, producer: tuple[int, int] = REFUSED) -> tuple[int, int, int]:
    node = DataNode()
    node.services["producer_ids"] = ids
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1000, producer_id=producer[0], producer_epoch=producer[1]
    )
    response = node.ask(init_producer_id, request, 5)
    return response.error_code, response.producer_id, response.producer_epoch


def test_without_a_block_the_producer_may_try_again() -> None:
    ids = Ids(refuses=True)
    assert ask(ids) == (0, 7, 0)
    assert ask(ids) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *REFUSED)


def describe(node: DataNode, topic: str, *indexes: int) -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=list(indexes))])
    [described] = node.ask(describe_producers, request, 0).topics
    assert described.name == topic
    partitions: list[PartitionResponse] = described.partitions
    return partitions


def test_idempotent_and_transactional_producers() -> None:
    node = DataNode()
    hosted = node.topic("t", 2)
    append(hosted, b"a", b"b", timestamp=T0, producer=(7, 2, 0))
    append(hosted, b"c", timestamp=T0 + 5, producer=(8, 0, 4), transactional=True)
    with_two, without = describe(node, "t", 0, 1)
    plain = ProducerState(producer_id=7, producer_epoch=2, last_sequence=1, last_timestamp=T0 + 1, coordinator_epoch=-1)
    in_transaction = ProducerState(
        producer_id=8,
        producer_epoch=0,
        last_sequence=4,
        last_timestamp=T0 + 5,
        coordinator_epoch=-1,
        current_txn_start_offset=2,
    )
    assert with_two.active_producers == [plain, in_transaction]
    assert (with_two.error_code, without.error_code, without.active_producers) == (0, 0, [])
    end_transaction(hosted, 8, commit=True)
    [_, ended] = describe(node, "t", 0)[0].active_producers
    assert (ended.current_txn_start_offset, ended.coordinator_epoch, ended.last_sequence) == (-1, 0, 4)


def test_follower_describes_its_producers() -> None:
    node = DataNode()
    append(node.topic("t"), b"a", producer=(7, 2, 0))
    node.follow("t")
    assert [each.producer_id for each in describe(node, "t", 0)[0].active_producers] == [7]
