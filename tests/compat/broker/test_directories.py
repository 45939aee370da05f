"""Data directories passed between Ottla and Apache Kafka 4.3.0: both serve the same topics and records from them."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType
from tests.compat.broker.cluster_story import story_of
from tests.support.peers.clients import CLIENTS, CODECS, Outgoing, ProducerOptions, Receipt
from tests.support.peers.topics import await_gone, await_leaders, await_true, make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer, start_ottla

NOW_MS = time.time_ns() // 1_000_000
"""Timestamps of the records: a start would expire the producers of old records."""


@contextmanager
def serving(start: StartServer, folder: Path) -> Iterator[KafkaServer]:
    """A server on the two log directories `one` and `two` in `folder`."""
    one, two = folder / "one", folder / "two"
    one.mkdir(parents=True, exist_ok=True)
    two.mkdir(exist_ok=True)
    settings = {"log.dirs": f"{one},{two}", "log.retention.ms": -1, "log.segment.delete.delay.ms": 100}
    with start(settings | {"log.initial.task.delay.ms": 500, "log.retention.check.interval.ms": 500}, data_dir=one) as server:
        yield server


def send(server: KafkaServer, topic: str, records: list[Outgoing], **options: Any) -> None:
    outcomes = CLIENTS["confluent"]().produce(server.bootstrap, topic, records, ProducerOptions(**options))
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)


def result_of(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    return future.result(30)


def fill(server: KafkaServer) -> None:
    """Write some of everything that a directory can hold."""
    bootstrap = server.bootstrap
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    make_topic(bootstrap, "plain", 3)
    for number, codec in enumerate(CODECS):
        sent = [
            Outgoing(
                b"value %d of %s " % (index, codec.encode()) * 5,
                key=b"key %d" % index,
                partition=index % 3,
                timestamp_ms=NOW_MS + 1000 * number + index,
                headers=(("codec", codec.encode()), ("none", None)),
            )
            for index in range(60)
        ]
        send(server, "plain", sent, codec=codec, batch_bytes=1000, idempotent=number % 2 == 0)
    make_topic(bootstrap, "rolled", 1, {"segment.bytes": 1 << 20})
    send(server, "rolled", [Outgoing(b"%08d" % index * 1000, partition=0) for index in range(400)], batch_bytes=100_000)
    make_topic(bootstrap, "tuned", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.9"})
    send(server, "tuned", [Outgoing(b"v%d" % index, key=b"k%d" % (index % 7), partition=0) for index in range(50)])
    make_topic(bootstrap, "stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    send(server, "stamped", [Outgoing(b"stamped", partition=0)] * 3)
    make_topic(bootstrap, "gone", 2)
    result_of(admin.delete_topics(["gone"]))
    result_of(admin.delete_records([TopicPartition("plain", 0, 7)]))
    result_of(admin.create_partitions([NewPartitions("stamped", 2)]))
    await_leaders(bootstrap, "stamped", 2)
    await_gone(bootstrap, "gone")
    for kind, name, key, value in (
        (ResourceType.TOPIC, "plain", "retention.ms", "123456789012"),
        (ResourceType.BROKER, "1", "log.cleaner.threads", "2"),
    ):
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        result_of(admin.incremental_alter_configs([ConfigResource(kind, name, incremental_configs=[entry])]))
        await_true(lambda kind=kind, name=name, key=key, value=value: config(admin, kind, name, key) == value, key)


def config(admin: AdminClient, kind: ResourceType, name: str, key: str) -> str | None:
    value: str | None = result_of(admin.describe_configs([ConfigResource(kind, name)]))[key].value
    return value


def transact(server: KafkaServer) -> None:
    """Two transactions, one of them aborted."""
    make_topic(server.bootstrap, "transactions", 1)
    producer = Producer({"bootstrap.servers": server.bootstrap, "transactional.id": "a-story", "log_level": 0})
    producer.init_transactions(60)
    for number, finish in enumerate((producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)):
        producer.begin_transaction()
        for index in range(10):
            producer.produce("transactions", b"transaction %d, record %d" % (number, index), partition=0)
        producer.flush(60)
        finish(60)


@pytest.mark.slow
def test_apache_serves_what_ottla_wrote(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with serving(start_ottla, tmp_path / "ottla") as ottla:
        fill(ottla)
        before = story_of(ottla)
    shutil.copytree(tmp_path / "ottla", tmp_path / "copy")
    with serving(apache_kafka.start_server, tmp_path / "copy") as apache:
        assert story_of(apache) == before
        send(apache, "plain", [Outgoing(b"from Apache", partition=index) for index in range(3)], idempotent=True)
        make_topic(apache.bootstrap, "by-apache")
        grown = story_of(apache)
    with serving(start_ottla, tmp_path / "copy") as ottla:
        assert story_of(ottla) == grown


@pytest.mark.slow
def test_apache_serves_what_a_killed_ottla_left(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    with serving(start_ottla, tmp_path / "ottla") as ottla:
        fill(ottla)
        before = story_of(ottla)
        ottla.kill()
    shutil.copytree(tmp_path / "ottla", tmp_path / "copy")
    with serving(apache_kafka.start_server, tmp_path / "copy") as apache:
        assert story_of(apache) == before


@pytest.mark.parametrize("end", [KafkaServer.stop, pytest.param(KafkaServer.kill, marks=pytest.mark.slow)])
def test_ottla_serves_what_apache_wrote(apache_kafka: ApacheKafka, tmp_path: Path, end: Callable[[KafkaServer], None]) -> None:
    with serving(apache_kafka.start_server, tmp_path / "apache") as apache:
        fill(apache)
        transact(apache)
        before = story_of(apache)
        end(apache)
    shutil.copytree(tmp_path / "apache", tmp_path / "copy")
    with serving(start_ottla, tmp_path / "copy") as ottla:
        assert story_of(ottla) == before
        assert len(before.committed["transactions-0"]) == 20 < len(before.records["transactions-0"])
        send(ottla, "plain", [Outgoing(b"from Ottla", partition=index) for index in range(3)], idempotent=True)
        send(ottla, "transactions", [Outgoing(b"after them", partition=0)])
        make_topic(ottla.bootstrap, "by-ottla", 2, {"retention.ms": 987654321098})
        grown = story_of(ottla)
    with serving(apache_kafka.start_server, tmp_path / "copy") as apache:
        assert story_of(apache) == grown
