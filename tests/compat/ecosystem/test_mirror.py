"""MirrorMaker 2, also from Apache Kafka to Ottla: it copies records, topic settings and group offsets."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from tests.support.peers.group_members import MemberOptions, Members, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import await_true, describe_topic, make_topic
from tests.support.peers.transactions import committed_offset, read
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports, properties_text
from tests.support.servers.ottla_server import StartServer, start_ottla

TOPIC, GROUP = "orders", "billing"
PARTITIONS = 2
RETENTION_MS = 123_456_789


@pytest.fixture
def mirrored(start_server: StartServer, programs: JavaPrograms, tmp_path: Path) -> Iterator[tuple[KafkaServer, KafkaServer]]:
    """Two nodes, and MirrorMaker from the first to the second."""
    with start_server() as source, start_server() as target:
        yield from _mirror(programs, tmp_path, source, target)


@pytest.fixture
def migrated(apache_kafka: ApacheKafka, programs: JavaPrograms, tmp_path: Path) -> Iterator[tuple[KafkaServer, KafkaServer]]:
    """Apache Kafka, Ottla, and MirrorMaker from one to the other."""
    with apache_kafka.start_server() as source, start_ottla() as target:
        yield from _mirror(programs, tmp_path, source, target)


def _mirror(
    programs: JavaPrograms, folder: Path, source: KafkaServer, target: KafkaServer
) -> Iterator[tuple[KafkaServer, KafkaServer]]:
    (port,) = free_ports(1)
    settings: dict[str, object] = {
        "clusters": "a,b",
        "a.bootstrap.servers": source.bootstrap,
        "b.bootstrap.servers": target.bootstrap,
        "a->b.enabled": "true",
        "a->b.topics": TOPIC,
        "a->b.groups": GROUP,
        "b.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{port}",
        "replication.factor": 1,
        "checkpoints.topic.replication.factor": 1,
        "heartbeats.topic.replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
        "offset.storage.replication.factor": 1,
        "status.storage.replication.factor": 1,
        "config.storage.replication.factor": 1,
        "offset.storage.partitions": 1,
        "status.storage.partitions": 1,
        "plugin.discovery": "service_load",
        "refresh.topics.interval.seconds": 1,
        "refresh.groups.interval.seconds": 1,
        "emit.checkpoints.interval.seconds": 1,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1,
        "sync.topic.configs.interval.seconds": 2,
        "offset.lag.max": 0,
        "scheduled.rebalance.max.delay.ms": 0,
        "heartbeat.interval.ms": 300,
        "session.timeout.ms": 6000,
    }
    config = folder / "mirror.properties"
    config.write_text(properties_text(settings))
    make_topic(source.bootstrap, TOPIC, PARTITIONS, {"retention.ms": RETENTION_MS})
    with programs.start("org.apache.kafka.connect.mirror.MirrorMaker", config, heap_mb=384):
        yield source, target


def check(source: KafkaServer, target: KafkaServer, members: Members) -> None:
    """Records and offsets are copied from `source` to `target`, where the group continues."""
    sent = send_numbers(source.bootstrap, TOPIC, PARTITIONS, 0, 100)
    remote = f"a.{TOPIC}"
    await_true(lambda: len(describe_topic(target.bootstrap, remote).partitions) == PARTITIONS, f"the topic {remote}")
    await_true(lambda: len(read(target.bootstrap, remote, PARTITIONS, committed=True)) >= 100, "mirrored records")
    assert sorted(read(target.bootstrap, remote, PARTITIONS, committed=True), key=int) == sent

    member = members.open("confluent", source.bootstrap, MemberOptions(GROUP, topics=(TOPIC,)))
    await_values([member], sent)
    member.close()
    later = send_numbers(source.bootstrap, TOPIC, PARTITIONS, 100, 40)
    await_true(lambda: len(read(target.bootstrap, remote, PARTITIONS, committed=True)) >= 140, "later records")
    await_true(lambda: committed_offset(target.bootstrap, GROUP, remote, 0) is not None, "offsets of the group")
    moved = members.open("confluent", target.bootstrap, MemberOptions(GROUP, topics=(remote,)))
    await_values([moved], later)
    # Translated offsets may be too low, never too high: a few records may come again, none may be missed.
    assert set(moved.values) <= set(sent) | set(later)
    await_true(lambda: retention_ms(target, remote) == RETENTION_MS, "the topic's settings")


def retention_ms(server: KafkaServer, topic: str) -> int:
    """The topic's setting, as the server has it."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return int(admin.describe_configs([resource], request_timeout=HANG_S)[resource].result()["retention.ms"].value)


@pytest.fixture
def members() -> Iterator[Members]:
    def no_java() -> None:
        raise AssertionError("no Java members here")

    with Members(no_java) as opened:  # type: ignore[arg-type]  # never called
        yield opened


@pytest.mark.slow
def test_mirror(mirrored: tuple[KafkaServer, KafkaServer], members: Members) -> None:
    check(*mirrored, members)


@pytest.mark.slow
def test_from_apache_to_ottla(migrated: tuple[KafkaServer, KafkaServer], members: Members) -> None:
    check(*migrated, members)
