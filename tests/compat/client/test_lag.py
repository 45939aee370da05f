"""The lag of groups in records and seconds, on both servers: markers, transactions, deleted records, groups of any kind."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from tests.support.peers.topics import make_topic

from ottla import Consumer, Producer
from ottla.client.admin.group_offsets import alter_consumer_group_offsets
from ottla.client.admin.offsets import delete_records
from ottla.client.admin.topics import delete_topics
from ottla.client.cluster import Cluster, open_cluster
from ottla.client.lag import GroupLag, LagReader
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings
from ottla.ids import TopicPartition

T = TypeVar("T")
HOUR_MS = 3_600_000
NOW_MS = int(time.time() * 1000)


def run(bootstrap: str, work: Callable[[Cluster], Awaitable[T]]) -> T:
    async def main() -> T:
        cluster = open_cluster(real_client_world(), admin_settings({"bootstrap.servers": bootstrap}))
        try:
            return await work(cluster)
        finally:
            cluster.close()

    return asyncio.run(main())


def send(bootstrap: str, topic: str, ages_h: list[float], **settings: Any) -> None:
    """One batch of records that are so many hours old."""
    with Producer(bootstrap, linger_ms=1000, **settings) as producer:
        for each in ages_h:
            producer.send(topic, b"x", partition=0, timestamp=NOW_MS - int(each * HOUR_MS))


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    async def work(cluster: Cluster) -> None:
        (await alter_consumer_group_offsets(cluster, group, {(topic, 0): offset})).raise_first()

    run(bootstrap, work)


def lag_of(bootstrap: str, group: str, **options: Any) -> GroupLag:
    async def work(cluster: Cluster) -> GroupLag:
        reader = LagReader(cluster, **options)
        return next(each for each in await reader.read(with_members=True) if each.group == group)

    return run(bootstrap, work)


def hours(found: GroupLag) -> float | None:
    """The lag as it was when this module was imported: a long run may have come here later."""
    if not found.lag_s:
        return found.lag_s
    return round((found.lag_s - (time.time() - NOW_MS / 1000)) / 3600, 1)


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_seconds_are_the_age_of_the_first_unread_record(bootstrap: str, topic: str, codec: str) -> None:
    make_topic(bootstrap, topic, 2)
    send(bootstrap, topic, [9, 5, 3, 2], compression_type=codec)
    for offset, expected in ((0, (4, 9.0)), (1, (3, 5.0)), (3, (1, 2.0)), (4, (0, 0.0))):
        commit(bootstrap, f"{topic}-g", topic, offset)
        found = lag_of(bootstrap, f"{topic}-g")
        assert (found.lag, hours(found)) == expected, offset
    assert found.state == "Empty"


def test_deleted_records_count_as_lost(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, 1)
    send(bootstrap, topic, [9, 5, 3])
    commit(bootstrap, f"{topic}-g", topic, 0)

    async def delete(cluster: Cluster) -> None:
        (await delete_records(cluster, {TopicPartition(topic, 0): 2})).raise_first()

    run(bootstrap, delete)
    found = lag_of(bootstrap, f"{topic}-g")
    assert (found.lag, found.lost, hours(found)) == (3, 2, 3.0)


def test_markers_are_nothing_to_read(bootstrap: str, topic: str) -> None:
    """A consumer that has read all may have committed the offset of the marker: Kafka counts one record, no second passes."""
    make_topic(bootstrap, topic, 1)
    with Producer(bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"x", partition=0, timestamp=NOW_MS - HOUR_MS)
        producer.commit_transaction()
    commit(bootstrap, f"{topic}-g", topic, 1)
    found = lag_of(bootstrap, f"{topic}-g")
    assert (found.lag, found.lag_s) == (1, 0.0)


def test_read_committed_ends_at_the_last_stable_offset(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, 1)
    send(bootstrap, topic, [9])
    commit(bootstrap, f"{topic}-g", topic, 1)
    with Producer(bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"x", partition=0, timestamp=NOW_MS - HOUR_MS)
        producer.flush()
        assert (lag_of(bootstrap, f"{topic}-g").lag, hours(lag_of(bootstrap, f"{topic}-g"))) == (1, 1.0)
        found = lag_of(bootstrap, f"{topic}-g", isolation_level="read_committed")
        assert (found.lag, found.lag_s) == (0, 0.0)
        producer.abort_transaction()
    send(bootstrap, topic, [0.5])
    found = lag_of(bootstrap, f"{topic}-g", isolation_level="read_committed")
    assert (found.lag, hours(found)) == (3, 0.5), "the aborted record is stepped over"


def test_topic_that_is_gone_has_no_lag(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, 1)
    send(bootstrap, topic, [1])
    # A member keeps the group, and so its offsets, from being deleted with the topic.
    with Consumer(bootstrap, group_id=f"{topic}-g", auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        consumer.subscribe(topic)
        assert consumer.poll(60)
        consumer.commit()
        found = lag_of(bootstrap, f"{topic}-g")
        assert (found.lag, found.lag_s, found.state) == (0, 0.0, "Stable")
        (row,) = found.partitions
        assert row.member is not None

        async def delete(cluster: Cluster) -> None:
            (await delete_topics(cluster, [topic])).raise_first()

        run(bootstrap, delete)
        assert all(each.lag is None for each in lag_of(bootstrap, f"{topic}-g").partitions)


def test_time_is_asked_once_for_an_offset(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, 1)
    send(bootstrap, topic, [2, 1])
    for number in range(3):
        commit(bootstrap, f"{topic}-{number}", topic, number)

    async def work(cluster: Cluster) -> list[int]:
        reader = LagReader(cluster)
        fetches = []
        for _ in range(3):
            groups = [each for each in await reader.listed() if each.group_id.startswith(topic)]
            await reader.read(groups)
            fetches.append(reader.fetches)
        return fetches

    assert run(bootstrap, work) == [2, 2, 2]


def test_group_without_commits_has_its_partitions(bootstrap: str, topic: str) -> None:
    make_topic(bootstrap, topic, 1)
    with Consumer(bootstrap, group_id=f"{topic}-g", enable_auto_commit=False) as consumer:
        consumer.subscribe(topic)
        deadline = time.monotonic() + 60
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < deadline, "the group has no assignment"
        found = lag_of(bootstrap, f"{topic}-g")
        assert (found.lag, found.lag_s) == (0, 0.0)
        assert [(each.offset, each.end, each.lag) for each in found.partitions] == [(None, 0, None)]
