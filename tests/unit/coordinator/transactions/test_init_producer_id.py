"""InitProducerId: new ids, next epochs, retries, zombies, exhausted epochs. Codes are those of Apache Kafka 4.3."""

import logging

import pytest
from tests.support.shards.transaction_shard import OLD, ShardInHand, code_of

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.transaction import EPOCH_MAX, TransactionState
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


def test_two_phase_commit_must_be_enabled() -> None:
    shard = ShardInHand()
    refused = code_of(lambda: shard.initialise("a", enable2_pc=True))
    assert refused == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert code_of(lambda: shard.initialise("a", keep_prepared_txn=True)) == ErrorCode.UNSUPPORTED_VERSION
    allowed = ShardInHand(transaction_two_phase_commit_enable=True)
    allowed.initialise("a", enable2_pc=True, timeout_ms=0)
    assert allowed.known["a"].timeout_ms == 2**31 - 1


@pytest.mark.parametrize("version", [0, 1])
def test_keeping_needs_transaction_version_2(version: int) -> None:
    shard = ShardInHand(version, transaction_two_phase_commit_enable=True)
    assert code_of(lambda: shard.keep("a")) == ErrorCode.UNSUPPORTED_VERSION


def two_phase() -> ShardInHand:
    return ShardInHand(transaction_two_phase_commit_enable=True)


def test_keeping_without_an_open_transaction_is_a_plain_initialisation() -> None:
    shard = two_phase()
    assert shard.keep("a") == (Producer(1000, 0), None)
    assert shard.keep("a") == (Producer(1000, 1), None)


def test_an_open_transaction_is_kept_for_the_next_producer() -> None:
    shard = two_phase()
    writer = shard.initialise("a", enable2_pc=True)
    shard.add("a", writer, T)
    owner, ongoing = shard.keep("a", enable2_pc=True)
    assert (owner, ongoing) == (Producer(1000, 1), writer)
    assert not shard.orders
    assert shard.keep("a", enable2_pc=True) == (Producer(1000, 2), writer)
    known = shard.known["a"]
    assert (known.state, known.producer, known.partitions) == (TransactionState.ONGOING, writer, {T})
    assert shard.loaded().table.by_id == shard.known


def test_the_owner_of_a_kept_transaction_can_add_nothing_to_it() -> None:
    shard = two_phase()
    writer = shard.initialise("a")
    shard.add("a", writer, T)
    owner, _ = shard.keep("a")
    other = TopicPartition("t", 1)
    for asking, code in ((owner, ErrorCode.INVALID_TXN_STATE), (writer, ErrorCode.PRODUCER_FENCED)):
        for client in (OLD, 2):
            assert code_of(lambda asking=asking, client=client: shard.add("a", asking, other, client=client)) == code  # type: ignore[misc]
        assert code_of(lambda asking=asking: shard.shard.verify("a", asking, [T])) == code  # type: ignore[misc]


def test_keeping_may_be_retried_by_the_same_producer_only() -> None:
    shard = two_phase()
    writer = shard.initialise("a")
    shard.add("a", writer, T)
    first = shard.keep("a", expected=writer)
    assert first == (Producer(1000, 1), writer)
    written = len(shard.log)
    assert shard.keep("a", expected=writer) == first
    assert len(shard.log) == written
    assert shard.keep("a", expected=first[0]) == (Producer(1000, 2), writer)
    assert code_of(lambda: shard.keep("a", expected=writer)) == ErrorCode.PRODUCER_FENCED
    assert code_of(lambda: shard.initialise("a", expected=writer)) == ErrorCode.PRODUCER_FENCED
    assert shard.known["a"].state == TransactionState.ONGOING


def test_a_kept_transaction_has_the_longest_timeout_asked_for() -> None:
    shard = two_phase()
    writer = shard.initialise("a", timeout_ms=60_000)
    shard.add("a", writer, T)
    shard.keep("a", timeout_ms=1000)
    assert shard.known["a"].timeout_ms == 60_000
    shard.keep("a", enable2_pc=True)
    shard.keep("a", timeout_ms=1000)
    assert shard.known["a"].timeout_ms == 2**31 - 1


def test_initialising_without_keeping_aborts_a_kept_transaction() -> None:
    shard = two_phase()
    writer = shard.initialise("a", enable2_pc=True)
    shard.add("a", writer, T)
    owner, _ = shard.keep("a", enable2_pc=True)
    assert code_of(lambda: shard.initialise("a")) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(lambda: shard.keep("a")) == ErrorCode.CONCURRENT_TRANSACTIONS
    (order,) = shard.carry_out()
    assert (order.producer, order.is_commit) == (Producer(1000, 1), False)
    assert code_of(lambda: shard.end("a", owner, True)) == ErrorCode.INVALID_TXN_STATE  # it is aborted
    assert shard.initialise("a") == Producer(1000, 3)
    assert code_of(lambda: shard.end("a", owner, False)) == ErrorCode.PRODUCER_FENCED


def test_keeping_with_exhausted_epochs_gives_another_producer_id() -> None:
    shard = two_phase()
    shard.initialise("a")
    writer = set_epoch(shard, "a", EPOCH_MAX - 1)
    shard.add("a", writer, T)
    assert shard.keep("a", expected=writer) == (Producer(1001, 0), writer)
    assert shard.keep("a", expected=writer) == (Producer(1001, 0), writer)
    assert shard.keep("a") == (Producer(1001, 1), writer)


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
