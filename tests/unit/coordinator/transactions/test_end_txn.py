"""EndTxn: commit and abort, retries, stale and other producers; both transaction versions."""

import pytest
from tests.support.shards.transaction_shard import NEW, OLD, ShardInHand, code_of

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.transaction import EPOCH_MAX, NO_ID, TransactionState
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOT_TOLD = Producer(-1, -1)


def begun(client: int, version: int = 2) -> tuple[ShardInHand, Producer]:
    shard = ShardInHand(version)
    producer = shard.initialise("a")
    shard.add("a", producer, T1, T0, client=client)
    return shard, producer


@pytest.mark.parametrize("commit", [True, False])
def test_version_1_ends_a_transaction_and_answers_retries(commit: bool) -> None:
    shard, producer = begun(OLD)
    assert shard.end("a", producer, commit, OLD) == NOT_TOLD
    assert code_of(lambda: shard.end("a", producer, commit, OLD)) == ErrorCode.CONCURRENT_TRANSACTIONS
    (order,) = shard.carry_out()
    assert (order.producer, order.is_commit, order.partitions) == (producer, commit, (T0, T1))
    assert order.transaction_version == 0
    known = shard.known["a"]
    assert known.state == (TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT)
    assert (known.producer, known.partitions) == (producer, frozenset())
    assert shard.end("a", producer, commit, OLD) == NOT_TOLD
    assert code_of(lambda: shard.end("a", producer, not commit, OLD)) == ErrorCode.INVALID_TXN_STATE
    assert not shard.orders


def test_version_1_refuses_to_end_a_transaction_that_was_not_begun() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    for commit in (True, False):
        assert code_of(lambda commit=commit: shard.end("a", producer, commit, OLD)) == ErrorCode.INVALID_TXN_STATE  # type: ignore[misc]


@pytest.mark.parametrize("commit", [True, False])
def test_version_2_ends_a_transaction_in_the_next_epoch(commit: bool) -> None:
    shard, producer = begun(NEW)
    after = shard.end("a", producer, commit)
    assert after == Producer(producer.id, producer.epoch + 1)
    (order,) = shard.carry_out()
    assert (order.producer, order.transaction_version) == (after, 2)
    assert shard.known["a"].producer == after
    assert shard.end("a", producer, commit) == after, "asked again"
    assert code_of(lambda: shard.end("a", producer, not commit)) == ErrorCode.INVALID_TXN_STATE
    assert code_of(lambda: shard.end("a", after, True)) == ErrorCode.INVALID_TXN_STATE
    assert not shard.orders
    assert shard.end("a", after, False) == Producer(producer.id, producer.epoch + 2), "nothing was begun, but it is not sure"
    (order,) = shard.carry_out()
    assert order.partitions == ()


def test_version_2_may_abort_but_not_commit_an_empty_transaction() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    assert code_of(lambda: shard.end("a", producer, True)) == ErrorCode.INVALID_TXN_STATE
    assert code_of(lambda: shard.end("a", Producer(producer.id, producer.epoch - 1), False)) == ErrorCode.PRODUCER_FENCED
    assert shard.end("a", producer, False) == Producer(producer.id, 1)
    assert shard.known["a"].start_ms == shard.now.wall_ms


@pytest.mark.parametrize("client", [OLD, NEW])
def test_another_producer_cannot_end_a_transaction(client: int) -> None:
    shard, producer = begun(client)
    refusals = {
        Producer(producer.id, producer.epoch - 1): ErrorCode.PRODUCER_FENCED,
        Producer(producer.id, producer.epoch + 1): ErrorCode.PRODUCER_FENCED,
        Producer(producer.id + 1, producer.epoch): ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
    before = list(shard.log)
    for other, code in refusals.items():
        assert code_of(lambda other=other: shard.end("a", other, True, client)) == code  # type: ignore[misc]
    assert code_of(lambda: shard.end("unknown", producer, True, client)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(lambda: shard.end("", producer, True, client)) == ErrorCode.INVALID_REQUEST
    assert shard.log == before


@pytest.mark.parametrize("restarts", [False, True])
def test_ending_with_exhausted_epochs_gives_another_producer_id(restarts: bool) -> None:
    shard = ShardInHand()
    shard.initialise("a")
    shard.known["a"] = shard.known["a"]._replace(epoch=EPOCH_MAX - 1)
    last = Producer(1000, EPOCH_MAX - 1)
    shard.add("a", last, T0)
    after = shard.end("a", last, True)
    assert after == Producer(1001, 0)
    if restarts:
        shard.restart()
    for act in (lambda: shard.add("a", after, T0), lambda: shard.end("a", last, True)):
        assert code_of(act) == ErrorCode.CONCURRENT_TRANSACTIONS
    (order,) = shard.carry_out()
    assert order.producer == Producer(1000, EPOCH_MAX)
    assert shard.known["a"].producer == after
    assert shard.known["a"].next_producer_id == NO_ID
    assert shard.end("a", last, True) == after, "asked again"
    shard.add("a", after, T0)
    assert code_of(lambda: shard.end("a", last, True)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_completing_a_transaction_twice_writes_once() -> None:
    shard, producer = begun(NEW)
    after = shard.end("a", producer, True)
    (order,) = shard.carry_out()
    length = len(shard.log)
    shard.submit(shard.shard.complete("a", order.producer, shard.now))
    shard.add("a", after, T0)
    shard.submit(shard.shard.complete("a", order.producer, shard.now))
    shard.submit(shard.shard.complete("gone", order.producer, shard.now))
    assert len(shard.log) == length + 1
    assert shard.known["a"].state == TransactionState.ONGOING


def test_version_2_requests_are_refused_in_a_cluster_of_version_0() -> None:
    """Records of version 0 have no tagged fields: the producer's next id would be lost."""
    shard = ShardInHand(transaction_version=0)
    producer = shard.initialise("id")
    refused = ErrorCode.UNSUPPORTED_VERSION
    assert code_of(lambda: shard.add("id", producer, T0, client=NEW)) == refused
    shard.add("id", producer, T0, client=OLD)
    assert code_of(lambda: shard.end("id", producer, commit=True, client=NEW)) == refused
    shard.end("id", producer, commit=True, client=OLD)


def test_a_kept_transaction_ends_in_the_epoch_of_its_owner() -> None:
    shard = ShardInHand(transaction_two_phase_commit_enable=True)
    writer = shard.initialise("a", enable2_pc=True)
    shard.add("a", writer, T0)
    owner, _ = shard.keep("a", enable2_pc=True)
    assert code_of(lambda: shard.end("a", writer, True)) == ErrorCode.PRODUCER_FENCED
    shard.restart()
    after = shard.end("a", owner, True)
    assert after == Producer(1000, 2)
    shard.restart()
    (order,) = shard.carry_out()
    # Partitions know the writer: its id, in the next epoch.
    assert (order.producer, order.is_commit) == (Producer(1000, 1), True)
    assert shard.end("a", owner, True) == after
    assert code_of(lambda: shard.end("a", owner, False)) == ErrorCode.INVALID_TXN_STATE
    shard.add("a", after, T0)
    # A repeated EndTxn of the owner must not end the next transaction.
    assert code_of(lambda: shard.end("a", owner, True)) == ErrorCode.PRODUCER_FENCED
    assert shard.known["a"].state == TransactionState.ONGOING
    assert shard.loaded().table.by_id == shard.known


def test_a_kept_transaction_cannot_end_without_an_epoch_bump() -> None:
    shard = ShardInHand(transaction_two_phase_commit_enable=True)
    writer = shard.initialise("a")
    shard.add("a", writer, T0)
    owner, _ = shard.keep("a")
    assert code_of(lambda: shard.end("a", owner, True, client=OLD)) == ErrorCode.UNSUPPORTED_VERSION
    assert code_of(lambda: shard.end("a", writer, True, client=OLD)) == ErrorCode.PRODUCER_FENCED


def test_an_owner_with_the_last_epoch_gets_another_producer_id_and_may_retry() -> None:
    shard = ShardInHand(transaction_two_phase_commit_enable=True)
    shard.initialise("a")
    writer = Producer(1000, EPOCH_MAX - 1)
    shard.known["a"] = shard.known["a"]._replace(epoch=writer.epoch)
    shard.add("a", writer, T0)
    shard.keep("a")
    shard.known["a"] = shard.known["a"]._replace(next_epoch=EPOCH_MAX - 1)
    owner = shard.known["a"].owner
    assert owner == Producer(1001, EPOCH_MAX - 1)
    after = shard.end("a", owner, False)
    assert after == Producer(1002, 0)
    (order,) = shard.carry_out()
    assert order.producer == Producer(1000, EPOCH_MAX)
    assert shard.known["a"].producer == after
    assert shard.end("a", owner, False) == after
    assert shard.initialise("a", expected=owner) == after


@pytest.mark.parametrize("version", [0, 1])
def test_a_kept_transaction_ends_after_a_downgrade_of_the_feature(version: int) -> None:
    shard = ShardInHand(transaction_two_phase_commit_enable=True)
    writer = shard.initialise("a", timeout_ms=5000)
    shard.add("a", writer, T0)
    owner, _ = shard.keep("a", timeout_ms=5000)
    shard.settings = shard.settings._replace(transaction_version=version)
    shard.shard.follow(shard.settings)
    shard.pass_time(30_000)
    shard.restart()
    (order,) = shard.carry_out()
    assert order.producer == Producer(1000, 1)
    assert shard.known["a"].producer == Producer(1000, 2)
    assert code_of(lambda: shard.add("a", owner, T0, client=OLD)) == ErrorCode.PRODUCER_FENCED
