"""The shard's contract with its host: loading, orders and settings."""

import logging
from typing import Any

import pytest
from tests.support.shards.transaction_shard import NEW, OLD, ShardInHand, code_of

from ottla.coordinator.contract import Producer
from ottla.coordinator.transactions.shard import Filters, describe, list_transactions, states_named
from ottla.coordinator.transactions.table import TransactionSettings
from ottla.coordinator.transactions.transaction import EPOCH_MAX, TransactionState
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.list_transactions import TransactionState as ListedTransaction

T = TopicPartition("t", 0)


def test_loading_sends_the_markers_of_unfinished_transactions_again() -> None:
    shard = ShardInHand()
    for name, commit in (("committing", True), ("aborting", False), ("done", True)):
        producer = shard.initialise(name)
        shard.add(name, producer, T)
        shard.end(name, producer, commit)
        if name == "done":
            (order,) = (each for each in shard.orders if each.transactional_id == name)
            shard.submit(shard.shard.complete(name, order.producer, shard.now))
            shard.orders.remove(order)
    shard.initialise("idle")
    given = sorted(shard.orders)
    shard.restart()
    assert sorted(shard.orders) == given
    shard.carry_out()
    assert shard.known["committing"].state == TransactionState.COMPLETE_COMMIT
    assert shard.known["aborting"].state == TransactionState.COMPLETE_ABORT


def test_loading_gives_the_same_state_at_every_point() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a")
    states = [dict(shard.known)]
    for step in range(6):
        if step % 3 == 0:
            shard.add("a", producer, T)
        elif step % 3 == 1:
            producer = shard.end("a", producer, step < 3)
        else:
            shard.carry_out()
        states.append(dict(shard.known))
    assert len(states) == len(shard.log)
    for length, state in enumerate(states, 1):
        assert shard.loaded(length).table.by_id == state


def test_a_new_transaction_version_applies_from_the_next_record_on() -> None:
    shard = ShardInHand(transaction_version=0)
    shard.initialise("a")
    shard.shard.follow(TransactionSettings(transaction_version=2))
    shard.initialise("a")
    assert [value[:2] for _, value in shard.log if value is not None] == [b"\0\0", b"\0\1"]


# Adding partitions to a transaction, and verifying that they are in it.

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


# The answers of a shard to ListTransactions and DescribeTransactions.


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


# Transactions past their timeout, and unused transactional ids.

LOOK_MS = 10_000


@pytest.mark.parametrize(("version", "client"), [(0, OLD), (1, OLD), (2, NEW), (2, OLD)])
def test_a_transaction_is_aborted_at_the_first_check_after_its_timeout(
    version: int, client: int, caplog: pytest.LogCaptureFixture
) -> None:
    shard = ShardInHand(version)
    slow, quick = shard.initialise("slow", timeout_ms=15_000), shard.initialise("quick")
    shard.add("slow", slow, T, client=client)
    shard.add("quick", quick, T, client=client)
    shard.pass_time(15_000)
    assert not shard.orders
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        shard.pass_time(LOOK_MS)
    assert "'slow'" in caplog.text
    assert "longer than the transaction.timeout.ms of its producer, 15000 ms" in caplog.text
    (order,) = shard.carry_out()
    assert (order.transactional_id, order.is_commit, order.producer.epoch) == ("slow", False, slow.epoch + 1)
    assert shard.known["slow"].state == TransactionState.COMPLETE_ABORT
    assert code_of(lambda: shard.add("slow", slow, T, client=client)) == ErrorCode.PRODUCER_FENCED
    assert shard.known["quick"].state == TransactionState.ONGOING
    shard.pass_time(2 * 60_000)
    assert [order.transactional_id for order in shard.carry_out()] == ["quick"]


def test_two_phase_commit_transactions_never_time_out() -> None:
    shard = ShardInHand(transaction_two_phase_commit_enable=True)
    producer = shard.initialise("a", enable2_pc=True)
    shard.add("a", producer, T)
    shard.pass_time(10**9)
    shard.restart()
    shard.pass_time(10**9)
    assert shard.known["a"].state == TransactionState.ONGOING
    shard.end("a", producer, True)
    assert [order.is_commit for order in shard.carry_out()] == [True]


def test_transactions_time_out_after_a_restart_too() -> None:
    shard = ShardInHand()
    producer = shard.initialise("a", timeout_ms=5000)
    shard.add("a", producer, T)
    shard.restart()
    shard.pass_time(2 * LOOK_MS)
    assert [order.transactional_id for order in shard.orders] == ["a"]


def test_an_abort_that_needs_a_producer_id_waits_until_there_is_one() -> None:
    shard = ShardInHand()
    shard.initialise("a", timeout_ms=5000)
    shard.known["a"] = shard.known["a"]._replace(epoch=EPOCH_MAX - 1)
    shard.add("a", shard.known["a"].producer, T)

    def none_now() -> int:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "none now")

    shard.shard.table.new_producer_id = none_now
    shard.pass_time(3 * LOOK_MS)
    assert not shard.orders
    shard.shard.table.new_producer_id = lambda: 77
    shard.pass_time(LOOK_MS)
    shard.carry_out()
    assert shard.known["a"].producer == (77, 0)


def test_an_empty_shard_sets_no_timer() -> None:
    shard = ShardInHand()
    shard.restart()
    assert shard.shard.next_deadline_ms is None


def test_unused_transactional_ids_expire(caplog: pytest.LogCaptureFixture) -> None:
    shard = ShardInHand(transactional_id_expiration_ms=7_200_000)
    shard.initialise("empty")
    done = shard.initialise("done")
    shard.add("done", done, T)
    shard.end("done", done, True)
    shard.carry_out()
    used = shard.initialise("used", timeout_ms=900_000)
    for _ in range(2):
        shard.pass_time(1_800_000)
        used = shard.end("used", used, False)
        shard.carry_out()
    assert set(shard.known) == {"empty", "done", "used"}
    with caplog.at_level(logging.INFO, "ottla.coordinator"):
        shard.pass_time(3_700_000)
    assert set(shard.known) == {"used"}
    assert "transactional.id.expiration.ms, 7200000 ms" in caplog.text
    assert set(shard.loaded().table.by_id) == {"used"}
    assert code_of(lambda: shard.add("done", done, T)) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    shard.pass_time(10**7)
    assert not shard.known


def test_open_transactions_keep_their_ids() -> None:
    shard = ShardInHand(transactional_id_expiration_ms=1, transaction_abort_timed_out_transaction_cleanup_interval_ms=10**9)
    producer = shard.initialise("a")
    shard.add("a", producer, T)
    shard.pass_time(10_000_000)
    assert set(shard.known) == {"a"}


def test_many_ids_expire_in_several_batches() -> None:
    shard = ShardInHand(transactional_id_expiration_ms=1)
    for number in range(1200):
        shard.initialise(f"id-{number}")
    sizes = []
    shard.elapsed_ms = 3_600_000
    while (deadline := shard.shard.next_deadline_ms) is not None and deadline <= shard.elapsed_ms:
        effects = shard.shard.expire(shard.now)
        sizes.append(len(effects.records))
        shard.submit(effects)
    assert [size for size in sizes if size] == [500, 500, 200]
    assert not shard.known
