"""A transaction and its record: both versions of the schema, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.coordinator.transactions.transaction import FOLLOWS, NAMES, Transaction, TransactionState, record_of, transaction_of
from ottla.errors import BrokenInvariant
from ottla.ids import TopicPartition
from ottla.wire.log_records import InternalLog, decode_coordinator_value, encode_coordinator_value

PARTITIONS = st.frozensets(st.builds(TopicPartition, st.sampled_from(["t", "u", "v"]), st.integers(0, 50)), max_size=9)
NUMBERS = st.integers(-1, 2**40)


def transactions(state: TransactionState) -> st.SearchStrategy[Transaction]:
    return st.builds(
        Transaction,
        transactional_id=st.text(min_size=1, max_size=5),
        producer_id=st.integers(0, 2**60),
        epoch=st.integers(0, 2**15 - 1),
        state=st.just(state),
        timeout_ms=st.integers(1, 2**31 - 1),
        partitions=st.just(frozenset()) if state == TransactionState.EMPTY else PARTITIONS,
        start_ms=NUMBERS,
        update_ms=NUMBERS,
        previous_producer_id=NUMBERS,
        next_producer_id=NUMBERS,
        client_version=st.integers(0, 2),
        next_epoch=st.just(-1) | st.integers(0, 2**15 - 1),
    )


@given(st.sampled_from(list(TransactionState)).flatmap(transactions), st.integers(0, 2))
def test_a_transaction_survives_its_record_round_trip(transaction: Transaction, version: int) -> None:
    key, value = record_of(transaction, version)
    assert value is not None
    is_tagged = version > 0 or transaction.is_kept
    assert value.version == (1 if is_tagged else 0)
    read = decode_coordinator_value(InternalLog.TRANSACTIONS, key, encode_coordinator_value(*value))
    expected = transaction
    if not is_tagged:  # that schema has no room for the rest
        expected = transaction._replace(previous_producer_id=-1, next_producer_id=-1, client_version=0)
    assert transaction_of(transaction.transactional_id, read.message) == expected


def test_only_a_prepared_transaction_can_be_completed() -> None:
    for state in TransactionState:
        known = Transaction("a", 1, 0, state, 1000)
        if state in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
            assert FOLLOWS[known.completed(5).state] == {state}
        else:
            with pytest.raises(BrokenInvariant):
                known.completed(5)


def test_every_state_has_a_name_and_predecessors() -> None:
    assert set(NAMES) == set(FOLLOWS) == set(TransactionState)
