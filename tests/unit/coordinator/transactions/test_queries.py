"""The answers of a shard to ListTransactions and DescribeTransactions."""

from typing import Any

import pytest
from tests.support.shards.transaction_shard import ShardInHand, code_of

from ottla.coordinator.transactions.queries import Filters, describe, list_transactions, states_named
from ottla.coordinator.transactions.states import TransactionState
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.list_transactions import TransactionState as ListedTransaction


@pytest.fixture
def shard() -> ShardInHand:
    made = ShardInHand()
    made.initialise("empty")
    producer = made.initialise("open", timeout_ms=5000)
    made.pass_time(100)
    made.add("open", producer, TopicPartition("u", 1), TopicPartition("t", 3), TopicPartition("t", 1))
    made.pass_time(200)
    return made


def _listed(shard: ShardInHand, **filters: Any) -> list[ListedTransaction]:
    table = shard.shard.table
    return list_transactions(table, [*table.by_id, "gone meanwhile"], Filters(**filters), shard.now)


def names(shard: ShardInHand, **filters: Any) -> list[str]:
    return sorted(each.transactional_id for each in _listed(shard, **filters))


def test_listing(shard: ShardInHand) -> None:
    listed = _listed(shard)
    found = sorted((each.transactional_id, each.producer_id, each.transaction_state) for each in listed)
    assert found == [("empty", 1000, "Empty"), ("open", 1001, "Ongoing")]
    assert names(shard, states=frozenset({TransactionState.EMPTY})) == ["empty"]
    assert names(shard, states=frozenset()) == []
    assert names(shard, producer_ids=frozenset({1001, 5})) == ["open"]
    assert names(shard, is_wanted_id=lambda name: name.startswith("e")) == ["empty"]


def test_running_times_are_counted_from_the_start(shard: ShardInHand) -> None:
    assert names(shard, running_for_ms=199) == ["empty", "open"], (
        "a transaction that never began counts as started long ago, as in Kafka"
    )
    assert names(shard, running_for_ms=200) == ["empty"]


def test_names_of_states() -> None:
    assert states_named([]) == (None, [])
    assert states_named(["Ongoing", "None", "None"]) == (frozenset({TransactionState.ONGOING}), ["None"])
    assert states_named(["None"]) == (frozenset(), ["None"])


def test_describing(shard: ShardInHand) -> None:
    told = describe(shard.shard.table, "open")
    assert (told.producer_id, told.producer_epoch, told.transaction_state) == (1001, 0, "Ongoing")
    assert (told.transaction_timeout_ms, told.transaction_start_time_ms) == (5000, shard.now.wall_ms - 200)
    assert [(each.topic, each.partitions) for each in told.topics] == [("t", [1, 3]), ("u", [1])]
    assert describe(shard.shard.table, "empty").transaction_start_time_ms == -1
    assert code_of(lambda: describe(shard.shard.table, "unknown")) == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
