"""One batch to its leader, without a producer."""

import asyncio

import pytest

from ottla.client.cluster import open_cluster
from ottla.client.once import Stored, store_once
from ottla.client.world import real_client_world
from ottla.config.client import admin_settings
from ottla.errors import NetworkError, RecordTooLargeError
from ottla.ids import TopicPartition
from ottla.records.builder import build_produce_batch
from ottla.testing import Broker


def store(broker: Broker, partition: int, value: bytes, topic: str = "t") -> Stored:
    async def body() -> Stored:
        cluster = open_cluster(real_client_world(), admin_settings(broker.bootstrap_servers))
        try:
            topic_id = (await cluster.topic(topic)).topic_id
            batch = build_produce_batch([(1_000, None, value, ())])
            return await store_once(cluster, broker.node_id, TopicPartition(topic, partition), topic_id, batch)
        finally:
            cluster.close()

    return asyncio.run(body())


def test_batch_is_stored_at_the_next_offset(broker: Broker) -> None:
    assert [store(broker, 1, b"a"), store(broker, 1, b"b"), store(broker, 2, b"c")] == [(0, None), (1, None), (0, None)]
    found = [(each.partition, each.value, each.timestamp) for each in broker.records("t")]
    assert found == [(1, b"a", 1_000), (1, b"b", 1_000), (2, b"c", 1_000)]


def test_time_of_the_broker_is_told(broker: Broker) -> None:
    broker.create_topic("stamped", config={"message.timestamp.type": "LogAppendTime"})
    stored = store(broker, 0, b"a", "stamped")
    assert stored.log_append_time == broker.records("stamped")[0].timestamp
    broker.delete_topic("stamped")


def test_refusal_names_the_partition(broker: Broker) -> None:
    with pytest.raises(RecordTooLargeError, match="a record was not appended to t-0: "):
        store(broker, 0, b"x" * 2_000_000)


def test_lost_answer_is_not_followed_by_a_second_request(broker: Broker) -> None:
    fault = broker.faults.lose_reply("Produce")
    with pytest.raises(NetworkError):
        store(broker, 0, b"a")
    assert fault.hits == 1
    assert [each.value for each in broker.records("t")] == [b"a"]
