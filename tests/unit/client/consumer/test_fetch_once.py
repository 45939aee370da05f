"""Records of some partitions in one request, without a consumer."""

import asyncio

from ottla.client.cluster import Outcome, open_cluster
from ottla.client.once import FetchedPartition, fetch_once
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings
from ottla.errors import OffsetOutOfRangeError
from ottla.ids import TopicPartition
from ottla.testing import Broker


def fetch(broker: Broker, topic: str, positions: dict[int, int], wait_ms: int = 0) -> dict[int, Outcome[FetchedPartition]]:
    async def body() -> dict[int, Outcome[FetchedPartition]]:
        cluster = open_cluster(real_client_world(), admin_settings(broker.bootstrap_servers))
        try:
            topic_id = (await cluster.topic(topic)).topic_id
            wanted = {TopicPartition(topic, index): offset for index, offset in positions.items()}
            found = await fetch_once(cluster, broker.node_id, wanted, {topic: topic_id}, wait_ms)
            return {each.partition: outcome for each, outcome in found.items()}
        finally:
            cluster.close()

    return asyncio.run(body())


def test_records_come_from_each_position_on(broker: Broker, topic: str) -> None:
    found = fetch(broker, topic, {0: 0, 1: 7})
    whole, rest = found[0], found[1]
    assert isinstance(whole, FetchedPartition)
    assert isinstance(rest, FetchedPartition)
    assert [(each.offset, each.value) for each in whole.records] == [(index, b"%d" % index) for index in range(10)]
    assert [each.offset for each in rest.records] == [7, 8, 9]
    assert (whole.next_offset, whole.high_watermark, rest.next_offset) == (10, 10, 10)
    assert (rest.records[0].topic, rest.records[0].partition, rest.records[0].timestamp) == (topic, 1, 1_007)


def test_end_of_a_partition_has_no_records(broker: Broker, topic: str) -> None:
    assert fetch(broker, topic, {0: 10}, wait_ms=1) == {0: FetchedPartition([], 10, 10)}


def test_partition_with_an_error_does_not_hide_the_others(broker: Broker, topic: str) -> None:
    found = fetch(broker, topic, {0: 99, 1: 9})
    assert isinstance(found[0], OffsetOutOfRangeError)
    assert isinstance(found[1], FetchedPartition)
    assert str(found[0]).startswith(f"{topic}-0 cannot be read: ")


def test_markers_of_transactions_are_passed_over(broker: Broker, topic: str) -> None:
    from ottla import Producer

    with Producer(broker.bootstrap_servers, transactional_id=topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"ten", partition=0)
    found = fetch(broker, topic, {0: 10}, wait_ms=1_000)[0]
    assert isinstance(found, FetchedPartition)
    assert [each.value for each in found.records] == [b"ten"]
    assert (found.next_offset, found.high_watermark) == (12, 12)
