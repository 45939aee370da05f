"""Ending of transactions that tasks left open."""

from __future__ import annotations

from ottla import Admin, Producer
from ottla.spark.sink.commit import abort_all, commit_all, look_at, open_transactions
from ottla.spark.sink.protocol import HeldTransaction, driver_id, task_id
from ottla.testing import Broker


def hold(broker: Broker, topic: str, name: str) -> HeldTransaction:
    with Producer(broker.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, name.encode(), partition=0).result(30)
        return HeldTransaction(*producer.detach_transaction(), 0, 1)


def test_open_transactions_are_found_by_query(shared_broker: Broker, out: str, query: str, admin: Admin) -> None:
    held = [hold(shared_broker, out, task_id(query, "w", number)) for number in range(2)]
    others = [hold(shared_broker, out, name) for name in (task_id(f"{query}-other", "w", 0), driver_id(query))]
    found = open_transactions(admin, query)
    assert [each[:3] for each in found] == [each[:3] for each in held]
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, found)
        assert open_transactions(admin, query) == []
        assert len(open_transactions(admin, f"{query}-other")) == 1
        abort_all(producer, others)


def test_an_abort_does_not_touch_a_later_transaction_of_the_same_id(
    shared_broker: Broker, out: str, query: str, admin: Admin
) -> None:
    earlier = hold(shared_broker, out, task_id(query, "w", 0))
    later = hold(shared_broker, out, task_id(query, "w", 0))
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, [earlier])
        assert [each[:3] for each in open_transactions(admin, query)] == [later[:3]]
        assert commit_all(producer, [later]) == []
        abort_all(producer, [later])  # it is committed, and stays so
        assert commit_all(producer, [later]) == []


def test_commits_can_be_repeated_and_tell_what_was_aborted(shared_broker: Broker, out: str, query: str) -> None:
    held = [hold(shared_broker, out, task_id(query, "w", number)) for number in range(3)]
    unknown = held[0]._replace(transactional_id=task_id(query, "w", 9))
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, [held[1], unknown])
        for _ in range(2):
            assert commit_all(producer, [*held, unknown]) == [held[1], unknown]
        assert commit_all(producer, []) == []


def test_looks_have_state_and_epoch(shared_broker: Broker, out: str, query: str, admin: Admin) -> None:
    held = hold(shared_broker, out, task_id(query, "w", 0))
    unknown = held._replace(transactional_id=task_id(query, "w", 9))
    looks = look_at(admin, [held, unknown])
    assert looks == {held.transactional_id: ("Ongoing", held.producer_id, held.epoch), unknown.transactional_id: None}
    with Producer(shared_broker.bootstrap_servers) as producer:
        abort_all(producer, [held])
