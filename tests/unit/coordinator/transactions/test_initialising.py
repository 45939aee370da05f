"""InitProducerId: new ids, next epochs, retries, zombies, exhausted epochs. Codes are those of Apache Kafka 4.3."""

import logging

import pytest
from tests.support.shards.transaction_shard import OLD, ShardInHand, code_of

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.states import TransactionState
from ottla.coordinator.transactions.transaction import EPOCH_MAX
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

T = TopicPartition("t", 0)


def set_epoch(shard: ShardInHand, name: str, epoch: int) -> Producer:
    """Set the epoch in the state of the shard."""
    shard.known[name] = shard.known[name]._replace(epoch=epoch)
    return shard.known[name].producer


def test_an_id_gets_a_producer_id_and_then_the_next_epochs() -> None:
    shard = ShardInHand()
    first = shard.initialise("a")
    assert first == Producer(1000, 0)
    assert shard.initialise("a") == Producer(1000, 1)
    assert shard.initialise("b") == Producer(1001, 0)
    assert shard.known["a"].state == TransactionState.EMPTY


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_transaction_timeout_out_of_bounds_is_refused(timeout_ms: int) -> None:
    shard = ShardInHand()
    assert code_of(lambda: shard.initialise("a", timeout_ms=timeout_ms)) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert not shard.log
    shard.initialise("a", timeout_ms=900_000)


def test_two_phase_commit_must_be_enabled_and_keep_prepared_is_refused() -> None:
    shard = ShardInHand()
    refused = code_of(lambda: shard.initialise("a", enable2_pc=True))
    assert refused == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert code_of(lambda: shard.initialise("a", keep_prepared_txn=True)) == ErrorCode.UNSUPPORTED_VERSION
    allowed = ShardInHand(transaction_two_phase_commit_enable=True)
    allowed.initialise("a", enable2_pc=True, timeout_ms=0)
    assert allowed.known["a"].timeout_ms == 2**31 - 1


def test_a_producer_that_names_its_epoch_gets_the_next_and_may_retry() -> None:
    shard = ShardInHand()
    first = shard.initialise("a")
    second = shard.initialise("a", expected=first)
    assert second == Producer(1000, 1)
    assert shard.initialise("a", expected=first) == second
    assert shard.initialise("a", expected=second) == Producer(1000, 2)
    assert code_of(lambda: shard.initialise("a", expected=first)) == ErrorCode.PRODUCER_FENCED


def test_zombies_are_fenced() -> None:
    shard = ShardInHand()
    zombie = shard.initialise("a")
    shard.initialise("a")
    before = list(shard.log)
    for expected in (zombie, Producer(1000, 7), Producer(77, 0)):
        assert code_of(lambda expected=expected: shard.initialise("a", expected=expected)) == ErrorCode.PRODUCER_FENCED  # type: ignore[misc]
    assert shard.log == before


@pytest.mark.parametrize("version", [0, 1, 2])
def test_initialising_aborts_an_open_transaction_in_an_unused_epoch(version: int, caplog: pytest.LogCaptureFixture) -> None:
    shard = ShardInHand(version)
    zombie = shard.initialise("a")
    shard.add("a", zombie, T, client=OLD)
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        assert code_of(lambda: shard.initialise("a")) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert "a new instance of its producer was initialised" in caplog.text
    assert code_of(lambda: shard.initialise("a")) == ErrorCode.CONCURRENT_TRANSACTIONS
    (order,) = shard.carry_out()
    assert order.producer == Producer(1000, 1)
    assert (order.is_commit, order.partitions) == (False, (T,))
    assert order.transaction_version == (2 if version == 2 else 0)
    assert shard.known["a"].state == TransactionState.COMPLETE_ABORT
    assert shard.initialise("a") == Producer(1000, 2)
    assert code_of(lambda: shard.add("a", zombie, T)) == ErrorCode.PRODUCER_FENCED


def test_a_producer_recovers_after_its_transaction_was_aborted() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    shard.add("a", producer, T)
    assert code_of(lambda: shard.initialise("a", expected=producer)) == ErrorCode.CONCURRENT_TRANSACTIONS
    shard.carry_out()
    assert shard.initialise("a", expected=producer) == Producer(1000, 1)


def test_exhausted_epochs_lead_to_another_producer_id() -> None:
    shard = ShardInHand()
    shard.initialise("a")
    last = set_epoch(shard, "a", EPOCH_MAX - 1)
    assert shard.initialise("a") == Producer(1001, 0)
    assert code_of(lambda: shard.initialise("a", expected=Producer(1000, 5))) == ErrorCode.PRODUCER_FENCED
    assert code_of(lambda: shard.initialise("a", expected=last)) == ErrorCode.PRODUCER_FENCED


def test_a_producer_with_the_last_epoch_may_retry_for_its_new_id() -> None:
    shard = ShardInHand()
    shard.initialise("a")
    last = set_epoch(shard, "a", EPOCH_MAX - 1)
    assert shard.initialise("a", expected=last) == Producer(1001, 0)
    assert shard.initialise("a", expected=last) == Producer(1001, 0)


def test_the_last_epoch_is_reserved_for_fencing() -> None:
    for version, client in ((0, OLD), (2, 2)):
        shard = ShardInHand(version)
        shard.initialise("a")
        producer = set_epoch(shard, "a", EPOCH_MAX - 1)
        shard.add("a", producer, T, client=client)
        assert code_of(lambda shard=shard: shard.initialise("a")) == ErrorCode.CONCURRENT_TRANSACTIONS  # type: ignore[misc]
        (order,) = shard.carry_out()
        assert order.producer == Producer(1000, EPOCH_MAX)
        assert shard.initialise("a") == (Producer(1001, 0) if version == 0 else Producer(1001, 1))
