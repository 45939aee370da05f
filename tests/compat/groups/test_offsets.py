"""Committed offsets: every library reads what another committed, with its metadata; also after kill -9."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.peers.group_members import FAST_GROUPS, MemberOptions, Members, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transactions import committed_offset
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.restarting_server import RestartingServer

Committed = tuple[int, str | None]
"""Offset and metadata; None where the library does not return it."""

PARTITIONS = 2


def confluent_commit(bootstrap: str, group: str, topic: str, offset: int, metadata: str) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata)], asynchronous=False)
    consumer.close()


def confluent_committed(bootstrap: str, group: str, topic: str) -> Committed:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
    consumer.close()
    return found.offset, None  # its metadata has bytes after the terminating NUL


def kafka_python_commit(bootstrap: str, group: str, topic: str, offset: int, metadata: str) -> None:
    from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, metadata, -1)})
    consumer.close()


def kafka_python_committed(bootstrap: str, group: str, topic: str) -> Committed:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    found = consumer.committed(TopicPartition(topic, 0), metadata=True)
    consumer.close()
    return found.offset, found.metadata


def aiokafka_commit(bootstrap: str, group: str, topic: str, offset: int, metadata: str) -> None:
    async def commit() -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition
        from aiokafka.structs import OffsetAndMetadata

        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, metadata)})
        await consumer.stop()

    asyncio.run(commit())


def aiokafka_committed(bootstrap: str, group: str, topic: str) -> Committed:
    async def committed() -> Committed:
        from aiokafka.admin import AIOKafkaAdminClient

        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        found = await admin.list_consumer_group_offsets(group)
        await admin.close()
        (row,) = (value for partition, value in found.items() if partition.topic == topic)
        return row.offset, row.metadata

    return asyncio.run(committed())


COMMIT: dict[str, Callable[[str, str, str, int, str], None]] = {
    "confluent": confluent_commit,
    "kafka-python": kafka_python_commit,
    "aiokafka": aiokafka_commit,
}
COMMITTED: dict[str, Callable[[str, str, str], Committed]] = {
    "confluent": confluent_committed,
    "kafka-python": kafka_python_committed,
    "aiokafka": aiokafka_committed,
}


@pytest.mark.parametrize("library", COMMIT)
def test_every_library_reads_what_one_commits(cluster: KafkaServer, name: str, library: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    for offset, metadata in [(5, "first"), (7, "ünïcode"), (3, "")]:
        COMMIT[library](cluster.bootstrap, name, name, offset, metadata)
        for read in COMMITTED.values():
            found, text = read(cluster.bootstrap, name, name)
            assert found == offset
            if text is not None:
                assert text.removesuffix("\0") == metadata  # confluent-kafka writes the terminating NUL, too


@pytest.mark.parametrize("protocol", [pytest.param("eager", marks=pytest.mark.slow), "consumer"])
def test_groups_go_on_after_kill_9(start_server: StartServer, protocol: str) -> None:
    """Members survive the kill; later members begin at the committed offsets."""
    with RestartingServer(start_server, FAST_GROUPS) as broker, Members(_no_java) as members:
        make_topic(broker.bootstrap, "t", PARTITIONS)
        kafka_python_commit(broker.bootstrap, "kept", "t", 9, "before")
        options = MemberOptions("g", topics=("t",), protocol=protocol, more={"auto.commit.interval.ms": "50"})
        members_now = [members.open("confluent", broker.bootstrap, options) for _ in range(2)]
        await_values(members_now, send_numbers(broker.bootstrap, "t", PARTITIONS, 0, 20))
        await_true(
            lambda: [committed_offset(broker.bootstrap, "g", "t", at) for at in range(PARTITIONS)] == [10, 10],
            "what was read to be committed",
        )
        broker.kill()
        broker.start()
        assert confluent_committed(broker.bootstrap, "kept", "t") == (9, None)
        assert kafka_python_committed(broker.bootstrap, "kept", "t") == (9, "before")
        await_values(members_now, send_numbers(broker.bootstrap, "t", PARTITIONS, 20, 20))
        for member in members_now:
            member.close()  # its last commit may fail while the coordinator is busy
        broker.kill()
        broker.start()
        later = send_numbers(broker.bootstrap, "t", PARTITIONS, 40, 20)
        last = members.open("confluent", broker.bootstrap, options)
        await_values([last], later)
        assert not {str(number) for number in range(20)} & set(last.values), (
            "records below the committed offsets are not read again"
        )


def _no_java() -> Any:
    raise AssertionError("these tests use confluent-kafka")
