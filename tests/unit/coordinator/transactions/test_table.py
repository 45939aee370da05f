"""TransactionTable: a record that was just built replays to the same state as one read from the log."""

import pytest

from ottla.coordinator.contract import CoordinatorRecord
from ottla.coordinator.transactions.table import TransactionSettings, TransactionTable
from ottla.coordinator.transactions.transaction import Transaction, TransactionState, tombstone_of
from ottla.ids import TopicPartition
from ottla.wire.log_records import (
    InternalLog,
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator_key,
    encode_coordinator_value,
)

PARTITIONS = frozenset({TopicPartition("t", 1), TopicPartition("u", 0)})


def read_back(record: CoordinatorRecord) -> CoordinatorRecord:
    key = decode_coordinator_key(InternalLog.TRANSACTIONS, encode_coordinator_key(record.key))
    assert record.value is not None
    value = decode_coordinator_value(InternalLog.TRANSACTIONS, key, encode_coordinator_value(*record.value))
    return CoordinatorRecord(key, value)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("state", [state for state in TransactionState if state != TransactionState.DEAD])
def test_a_record_just_built_replays_like_one_read_back(version: int, state: TransactionState) -> None:
    settings = TransactionSettings()._replace(transaction_version=version)
    here, there = (TransactionTable(settings, lambda: 1) for _ in range(2))
    partitions = frozenset[TopicPartition]() if state == TransactionState.EMPTY else PARTITIONS
    made = Transaction("a", 7, 3, state, 1000, partitions, 10, 20, 6, 8, 2)
    other = here.record(made._replace(transactional_id="b"))
    record = here.record(made)
    for each in (record, other):  # the last record built, and an earlier one
        here.replay(each)
        there.replay(read_back(each))
    assert here.by_id == there.by_id
    assert len(here.by_id) == 2
    here.replay(tombstone_of("a"))
    assert list(here.by_id) == ["b"]
