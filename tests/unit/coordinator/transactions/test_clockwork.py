"""Transactions past their timeout, and unused transactional ids."""

import logging

import pytest
from tests.support.shards.transaction_shard import NEW, OLD, ShardInHand, code_of

from ottla.coordinator.transactions.states import TransactionState
from ottla.coordinator.transactions.transaction import EPOCH_MAX
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

T = TopicPartition("t", 0)
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
