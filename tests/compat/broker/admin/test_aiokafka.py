"""aiokafka's admin client, which speaks only older versions of the admin APIs."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError
from tests.support.peers.clients import CLIENTS, Outgoing, ProducerOptions
from tests.support.peers.topics import await_gone, await_leaders, describe_topic, make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer


def with_admin(cluster: KafkaServer, use: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        await admin.start()
        try:
            return await use(admin)
        finally:
            await admin.close()

    return asyncio.run(run())


def test_create_list_describe_delete(cluster: KafkaServer, topic: str) -> None:
    async def steps(admin: Any) -> None:
        made = await admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "1000000"})])
        assert [error[1] for error in made.topic_errors] == [0]
        again = await admin.create_topics([NewTopic(topic, 2, 1)])
        assert [error[1] for error in again.topic_errors] == [36]
        await asyncio.to_thread(await_leaders, cluster.bootstrap, topic, 2)
        assert topic in await admin.list_topics()
        (described,) = await admin.describe_topics([topic])
        assert [part["leader"] for part in described["partitions"]] == [1, 1]
        deleted = await admin.delete_topics([topic])
        assert deleted.topic_error_codes == [(topic, 0)]

    with_admin(cluster, steps)
    await_gone(cluster.bootstrap, topic)


def test_validate_only(cluster: KafkaServer, topic: str) -> None:
    async def steps(admin: Any) -> None:
        checked = await admin.create_topics([NewTopic(topic, 2, 1)], validate_only=True)
        assert [error[1] for error in checked.topic_errors] == [0]

    with_admin(cluster, steps)
    assert describe_topic(cluster.bootstrap, topic).error_code == 3


def test_partitions_grow(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)

    async def steps(admin: Any) -> None:
        grown = await admin.create_partitions({topic: NewPartitions(3)})
        assert [error[1] for error in grown.topic_errors] == [0]
        with pytest.raises(InvalidPartitionsError):
            await admin.create_partitions({topic: NewPartitions(2)})

    with_admin(cluster, steps)
    await_leaders(cluster.bootstrap, topic, 3)


def test_configs(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "60000"})

    async def steps(admin: Any) -> None:
        (altered,) = await admin.alter_configs([resource])
        assert [each[0] for each in altered.resources] == [0]
        deadline = time.monotonic() + HANG_S
        value = None
        while value != "60000":  # Apache's broker learns of it a moment later
            assert time.monotonic() < deadline, f"retention.ms is {value}"
            (described,) = await admin.describe_configs([resource], include_synonyms=True)
            (answer,) = described.resources
            value = {entry[0]: entry[1] for entry in answer[4]}["retention.ms"]

    with_admin(cluster, steps)


def test_cluster(cluster: KafkaServer) -> None:
    async def steps(admin: Any) -> None:
        found = await admin.describe_cluster()
        assert found["cluster_id"] == "b3R0bGEtdGVzdHMtMDAwMQ"
        assert [(node["node_id"], node["port"]) for node in found["brokers"]] == [(1, cluster.port)]

    with_admin(cluster, steps)


def test_delete_records(cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    CLIENTS["aiokafka"]().produce(cluster.bootstrap, topic, [Outgoing(b"v", partition=0)] * 10, ProducerOptions())
    partition = TopicPartition(topic, 0)

    async def steps(admin: Any) -> None:
        assert await admin.delete_records({partition: RecordsToDelete(before_offset=3)}) == {partition: 3}

    with_admin(cluster, steps)
    assert CLIENTS["aiokafka"]().ends(cluster.bootstrap, topic, 0) == (3, 10)
