"""The shard's contract with its host: loading, orders and settings."""

from tests.support.shards.transaction_shard import ShardInHand

from ottla.coordinator.transactions.settings import TransactionSettings
from ottla.coordinator.transactions.states import TransactionState
from ottla.ids import TopicPartition

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
