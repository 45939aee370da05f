"""Commits as a consumer makes them: in order, automatic ones only of what has changed, callbacks where the caller is."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest

from ottla.client.admin.sync import Admin
from ottla.errors import RetriableCommitFailedError
from ottla.ids import TopicPartition
from ottla.testing import Broker

LONG = 60.0


@pytest.fixture
def consumer(face: Any, broker: Broker, topic: str) -> Any:
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest", "retry_backoff_ms": 10}
    with face(broker.bootstrap_servers, auto_commit_interval_ms=20, **given) as made:
        made.assign((topic, 0))
        yield made
    broker.faults.clear()


def test_a_commit_is_retried_until_it_is_stored(consumer: Any, broker: Broker, topic: str) -> None:
    first = TopicPartition(topic, 0)
    for error in ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"):
        broker.faults.fail("OffsetCommit", error, times=1)
    consumer.commit({first: 7}, timeout=LONG)
    assert consumer.committed(first).offset == 7


def test_an_asynchronous_commit_is_not_retried(consumer: Any, broker: Broker, topic: str) -> None:
    broker.faults.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=1)
    ended: list[Any] = []
    consumer.commit_async({(topic, 0): 3}, lambda offsets, error: ended.append(error))
    while not ended:
        consumer.poll(0.05)
    assert isinstance(ended[0], RetriableCommitFailedError)


def test_automatic_commits_happen_on_the_way(consumer: Any, broker: Broker, topic: str) -> None:
    first = TopicPartition(topic, 0)
    while consumer.position(first) < 10:
        consumer.poll(LONG)
    for _ in range(600):
        consumer.poll(0.05)
        found = consumer.committed(first)
        if found is not None and found.offset == 10:
            break
    assert found.offset == 10
    commits = consumer.metrics()["consumer-coordinator-metrics"]["commit-total"]
    for _ in range(5):
        consumer.poll(0.05)
    assert consumer.metrics()["consumer-coordinator-metrics"]["commit-total"] == commits  # nothing has changed since


def test_a_failed_automatic_commit_is_logged_and_made_again(
    consumer: Any, broker: Broker, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = TopicPartition(topic, 0)
    broker.faults.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=1)
    with caplog.at_level(logging.WARNING, "ottla.client"):
        for _ in range(600):
            consumer.poll(0.05)
            found = consumer.committed(first)
            if found is not None and found.offset == 10:
                break
    assert found.offset == 10
    assert "an automatic commit failed" in caplog.text


def committed(broker: Broker, topic: str) -> int | None:
    group = f"group-of-{topic}"
    with Admin(broker.bootstrap_servers) as admin:
        found = admin.list_consumer_group_offsets([group])[group].get(TopicPartition(topic, 0))
    return None if found is None else found.offset


def read(consumer: Any, count: int) -> None:
    while count > 0:
        count -= len(consumer.poll(LONG))


def test_offsets_that_were_reset_meanwhile_are_committed_again(face: Any, broker: Broker, topic: str) -> None:
    """The position is where it was at the last automatic commit, but the group's offset is not."""
    group, first = f"group-of-{topic}", TopicPartition(topic, 0)
    with face(broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        read(consumer, 20)
        consumer.unsubscribe()
        assert committed(broker, topic) == 10
        with Admin(broker.bootstrap_servers) as admin:
            admin.alter_consumer_group_offsets(group, {first: 0})
        consumer.subscribe([topic])
        read(consumer, 10)
    assert committed(broker, topic) == 10


def test_close_after_an_error_keeps_what_the_caller_has_committed(face: Any, broker: Broker, topic: str) -> None:
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest"}

    def commit_and_fail() -> None:
        with face(broker.bootstrap_servers, **given) as consumer:
            consumer.assign((topic, 0))
            read(consumer, 10)
            consumer.commit()
            raise KeyError

    with pytest.raises(KeyError):
        commit_and_fail()
    assert committed(broker, topic) == 10


def test_close_makes_an_automatic_commit_that_failed_again(face: Any, broker: Broker, topic: str) -> None:
    given = {"group_id": f"group-of-{topic}", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 100}
    with face(broker.bootstrap_servers, **given) as consumer:
        consumer.assign((topic, 0))
        read(consumer, 10)
        time.sleep(0.1)  # auto.commit.interval.ms: the next poll commits
        broker.faults.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=1)
        consumer.poll(0)
    broker.faults.clear()
    assert committed(broker, topic) == 10
