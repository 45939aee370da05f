"""Adding partitions to a transaction, and verifying that they are in it."""

import pytest
from tests.support.shards.transaction_shard import NEW, OLD, ShardInHand, code_of

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.states import TransactionState
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

A, B, C = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def test_the_first_partition_begins_the_transaction_and_its_time() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    shard.pass_time(1000)
    shard.add("a", producer, A, client=OLD)
    began_ms = shard.now.wall_ms
    shard.pass_time(1000)
    shard.add("a", producer, B, C)
    known = shard.known["a"]
    assert known.state == TransactionState.ONGOING
    assert known.partitions == {A, B, C}
    assert known.start_ms == began_ms
    assert known.update_ms == began_ms + 1000


def test_adding_known_partitions_writes_nothing() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    shard.add("a", producer, A, B)
    before = list(shard.log)
    shard.add("a", producer, B)
    shard.add("a", producer)
    assert shard.log == before


@pytest.mark.parametrize("state", ["Empty", "Ongoing", "CompleteCommit"])
def test_only_the_latest_producer_may_add(state: str) -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    if state != "Empty":
        shard.add("a", producer, A)
    if state == "CompleteCommit":
        producer = shard.end("a", producer, True)
        shard.carry_out()
    before = list(shard.log)
    refusals = {
        Producer(producer.id, producer.epoch - 1): ErrorCode.PRODUCER_FENCED,
        Producer(producer.id, producer.epoch + 1): ErrorCode.PRODUCER_FENCED,
        Producer(producer.id + 1, producer.epoch): ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
    for other, code in refusals.items():
        assert code_of(lambda other=other: shard.add("a", other, A)) == code  # type: ignore[misc]
    assert code_of(lambda: shard.add("unknown", producer, A)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(lambda: shard.add("", producer, A)) == ErrorCode.INVALID_REQUEST
    assert shard.log == before


@pytest.mark.parametrize("client", [OLD, NEW])
def test_adding_partitions_is_refused_while_a_transaction_ends(client: int) -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    shard.add("a", producer, A, client=client)
    shard.end("a", producer, True, client)
    for asking in (producer, Producer(99, 0)):
        assert code_of(lambda asking=asking: shard.add("a", asking, A)) == ErrorCode.CONCURRENT_TRANSACTIONS  # type: ignore[misc]


def test_verification() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")

    def verify(asking: Producer) -> dict[TopicPartition, int]:
        return shard.shard.verify("a", asking, [A, B])

    assert verify(producer) == {A: ErrorCode.TRANSACTION_ABORTABLE, B: ErrorCode.TRANSACTION_ABORTABLE}
    shard.add("a", producer, A, client=OLD)
    assert verify(producer) == {A: ErrorCode.NONE, B: ErrorCode.TRANSACTION_ABORTABLE}
    assert code_of(lambda: verify(Producer(producer.id, 9))) == ErrorCode.PRODUCER_FENCED
    assert code_of(lambda: verify(Producer(99, 0))) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    shard.end("a", producer, True, OLD)
    assert code_of(lambda: verify(producer)) == ErrorCode.CONCURRENT_TRANSACTIONS
    shard.carry_out()
    assert verify(producer) == {A: ErrorCode.TRANSACTION_ABORTABLE, B: ErrorCode.TRANSACTION_ABORTABLE}
