"""Moves between log directories that Ottla began and Apache Kafka continues, and the reverse."""

import time
from pathlib import Path

import pytest
from tests.support.logs.batches import make_batch, records_of
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import start_ottla

from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NOW_MS = int(time.time() * 1000)
TOPIC = "moved"
RECORDS = [b"%d" % number + b"x" * 20_000 for number in range(100)]
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, object]:
    return {"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}


def fill(server: KafkaServer) -> None:
    make_topic(server.bootstrap, TOPIC)
    with RawClient.to(server.bootstrap) as raw:
        for value in RECORDS:
            data = PartitionProduceData(index=0, records=bytes(make_batch(value, timestamp=NOW_MS)))
            topic = TopicProduceData(name=TOPIC, partition_data=[data])
            response = raw.request(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), 9)
            assert response.responses[0].partition_responses[0].error_code == 0


def read(server: KafkaServer) -> list[bytes | None]:
    values: list[bytes | None] = []
    with RawClient.to(server.bootstrap) as raw:
        while True:
            asked = FetchPartition(partition=0, fetch_offset=len(values), partition_max_bytes=1 << 20)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=TOPIC, partitions=[asked])])
            [answer] = raw.request(request, 12).responses[0].partitions
            assert answer.error_code == 0
            if not answer.records:
                return values
            values += [record.value for record in records_of(bytes(answer.records)) if record.offset >= len(values)]


def move(server: KafkaServer, target: Path) -> None:
    topics = [AlterReplicaLogDirTopic(name=TOPIC, partitions=[0])]
    with RawClient.to(server.bootstrap) as raw:
        request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(target), topics=topics)])
        [answer] = raw.request(request, 2).results[0].partitions
    assert answer.error_code == 0


def throttle(server: KafkaServer, bytes_per_second: int) -> None:
    setting = AlterableConfig(name=THROTTLE, config_operation=0, value=str(bytes_per_second))
    resource = AlterConfigsResource(resource_type=4, resource_name="1", configs=[setting])
    with RawClient.to(server.bootstrap) as raw:
        [answer] = raw.request(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert answer.error_code == 0, answer.error_message


def source_and_target(folder: Path) -> tuple[Path, Path]:
    """The directory that the partition is in, and the other one."""
    one, two = folder / "a", folder / "b"
    return (one, two) if (one / f"{TOPIC}-0").exists() else (two, one)


def folders(directory: Path) -> list[str]:
    """The folders of the partition, each by the end of its name."""
    return sorted(path.name[-7:] if "." in path.name else "" for path in directory.glob(f"{TOPIC}-0*"))


@pytest.mark.slow
def test_apache_goes_on_after_a_move(apache_kafka: ApacheKafka, tmp_path: Path, properties: dict[str, object]) -> None:
    with start_ottla(properties, data_dir=tmp_path / "a") as ottla:
        fill(ottla)
        source, target = source_and_target(tmp_path)
        move(ottla, target)
        await_true(lambda: folders(target) == [""], "the partition to be moved")
    with apache_kafka.start_server(properties, data_dir=tmp_path / "a") as apache:
        assert read(apache) == RECORDS
        assert folders(target) == [""]
        move(apache, source)
        await_true(lambda: "" in folders(source) and "" not in folders(target), "the partition to be moved back")
    with start_ottla(properties, data_dir=tmp_path / "a") as ottla:
        assert read(ottla) == RECORDS


@pytest.mark.parametrize("second", ["ottla", pytest.param("apache", marks=pytest.mark.slow)])
def test_copy_without_an_original_becomes_the_partition(
    apache_kafka: ApacheKafka, tmp_path: Path, properties: dict[str, object], second: str
) -> None:
    """The state after a kill right after the switch: the controller already has the new directory."""
    with start_ottla(properties, data_dir=tmp_path / "a") as ottla:
        fill(ottla)
        _, target = source_and_target(tmp_path)
        move(ottla, target)
        await_true(lambda: folders(target) == [""], "the partition to be moved")
    (target / f"{TOPIC}-0").rename(target / f"{TOPIC}-0.{'0123456789abcdef' * 2}-future")
    start = start_ottla if second == "ottla" else apache_kafka.start_server
    with start(properties, data_dir=tmp_path / "a") as server:
        assert read(server) == RECORDS
        assert folders(target) == [""]


@pytest.mark.slow
@pytest.mark.parametrize("first", ["ottla", "apache"])
@pytest.mark.parametrize("is_killed", [False, True])
def test_move_that_one_server_began_is_completed_by_the_other(
    apache_kafka: ApacheKafka, tmp_path: Path, properties: dict[str, object], first: str, is_killed: bool
) -> None:
    starts = [start_ottla, apache_kafka.start_server]
    start_first, start_second = starts if first == "ottla" else reversed(starts)
    with start_first(properties, data_dir=tmp_path / "a") as server:
        fill(server)
        source, target = source_and_target(tmp_path)
        throttle(server, 200_000)
        move(server, target)
        await_true(lambda: any(path.stat().st_size for path in target.glob(f"{TOPIC}-0*/*.log")), "some of it to be copied")
        if is_killed:
            server.kill()
    assert (folders(source), folders(target)) == ([""], ["-future"])
    with start_second(properties, data_dir=tmp_path / "a") as server:
        assert read(server) == RECORDS
        throttle(server, 2**40)
        await_true(lambda: folders(target) == [""], "the move to be completed")
        assert read(server) == RECORDS
