"""Plain requests about log directories get Apache Kafka's answers: DescribeLogDirs, AlterReplicaLogDirs."""

import time
from collections.abc import Iterator

import pytest
from tests.support.logs.batches import make_batch, records_of
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import KafkaServer

from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResult
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NOW_MS = int(time.time() * 1000)
UNKNOWN_PARTITION, INVALID_TOPIC, INVALID_ASSIGNMENT, LOG_DIR_NOT_FOUND = 3, 17, 39, 57
BROKER = 4


@pytest.fixture
def raw(cluster: KafkaServer) -> Iterator[RawClient]:
    with RawClient.to(cluster.bootstrap) as client:
        yield client


def directories(cluster: KafkaServer) -> list[str]:
    return str(cluster.properties["log.dirs"]).split(",")


def describe(raw: RawClient, *topics: str, version: int = 5) -> list[DescribeLogDirsResult]:
    asked = [DescribableLogDirTopic(topic=name, partitions=[0, 1, 9]) for name in topics]
    response = raw.request(DescribeLogDirsRequest(topics=asked), version)
    assert response.error_code == 0
    results: list[DescribeLogDirsResult] = sorted(response.results, key=lambda result: str(result.log_dir))
    return results


def places(raw: RawClient, topic: str) -> dict[int, str]:
    """Partition → its directory, without the copies of moves under way."""
    return {
        each.partition_index: result.log_dir
        for result in describe(raw, topic)
        for found in result.topics
        for each in found.partitions
        if not each.is_future_key
    }


def alter(raw: RawClient, *wanted: tuple[str, str, list[int]], version: int = 2) -> list[tuple[str, int, int]]:
    """(topic, partition, error code), sorted."""
    dirs = [
        AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=topic, partitions=indexes)])
        for path, topic, indexes in wanted
    ]
    response = raw.request(AlterReplicaLogDirsRequest(dirs=dirs), version)
    return sorted(
        (result.topic_name, each.partition_index, each.error_code) for result in response.results for each in result.partitions
    )


def produce(raw: RawClient, topic: str, value: bytes, index: int = 0) -> int:
    batch = bytes(make_batch(value, timestamp=NOW_MS))
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=batch)])
    response = raw.request(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
    [answer] = response.responses[0].partition_responses
    assert answer.error_code == 0
    offset: int = answer.base_offset
    return offset


def consume(raw: RawClient, topic: str) -> list[bytes | None]:
    """The values of partition 0, from its start to its end."""
    values: list[bytes | None] = []
    while True:
        asked = FetchPartition(partition=0, fetch_offset=len(values), partition_max_bytes=1 << 20)
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[FetchTopic(topic=topic, partitions=[asked])])
        [answer] = raw.request(request, 12).responses[0].partitions
        assert answer.error_code == 0
        if not answer.records:
            return values
        values += [record.value for record in records_of(bytes(answer.records)) if record.offset >= len(values)]


def test_describe_in_every_version(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, partitions=2)
    produce(raw, topic, b"x" * 100)
    for version in range(1, 6):
        results = describe(raw, topic, version=version)
        assert [result.log_dir for result in results] == sorted(directories(cluster))
        found = {
            each.partition_index: (each.partition_size, each.offset_lag, each.is_future_key)
            for result in results
            for topics in result.topics
            for each in topics.partitions
        }
        size = len(make_batch(b"x" * 100))
        assert found == {0: (size, 0, False), 1: (0, 0, False)}
        for result in results:
            assert (result.error_code, result.is_cordoned) == (0, False)
            if version >= 4:
                assert 0 < result.usable_bytes < result.total_bytes
            else:
                assert (result.total_bytes, result.usable_bytes) == (-1, -1)


def test_describe_all_or_none(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    everything = raw.request(DescribeLogDirsRequest(topics=None), 5)
    assert topic in {found.name for result in everything.results for found in result.topics}
    assert "__cluster_metadata" not in {found.name for result in everything.results for found in result.topics}
    assert [result.topics for result in describe(raw)] == [[], []]
    assert [result.topics for result in describe(raw, "no-such-topic")] == [[], []]


def test_alter_refusals(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    first, _ = directories(cluster)
    for path in (f"{first}-nowhere", first.rpartition("/")[2], f"{first}/", ""):
        assert alter(raw, (path, topic, [0])) == [(topic, 0, LOG_DIR_NOT_FOUND)], path
    assert alter(raw, (first, "no-such-topic", [0]), version=1) == [("no-such-topic", 0, UNKNOWN_PARTITION)]
    assert alter(raw, (first, topic, [-1, 9])) == [(topic, -1, UNKNOWN_PARTITION), (topic, 9, UNKNOWN_PARTITION)]
    assert alter(raw, (first, "__cluster_metadata", [0])) == [("__cluster_metadata", 0, UNKNOWN_PARTITION)]
    assert alter(raw, (first, "x" * 249, [0])) == [("x" * 249, 0, INVALID_TOPIC)]
    assert alter(raw, (f"{first}-nowhere", "no-such-topic", [0])) == [("no-such-topic", 0, LOG_DIR_NOT_FOUND)]
    assert alter(raw) == []


def test_a_partition_moves_with_its_records(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    sent = [b"%d" % number + b"x" * 50_000 for number in range(100)]
    for value in sent[:90]:
        produce(raw, topic, value)
    [source] = places(raw, topic).values()
    [target] = {*directories(cluster)} - {source}
    assert alter(raw, (target, topic, [0, 0])) == [(topic, 0, 0)]
    for value in sent[90:]:
        produce(raw, topic, value)
    await_true(lambda: places(raw, topic) == {0: target}, "the partition to be moved")
    assert consume(raw, topic) == sent
    assert produce(raw, topic, b"after") == 100
    # Back to the first directory; a second request replaces the first.
    assert alter(raw, (source, topic, [0]), (target, topic, [0])) == [(topic, 0, 0)]
    assert alter(raw, (source, topic, [0])) == [(topic, 0, 0)]
    await_true(lambda: places(raw, topic) == {0: source}, "the partition to be back")
    assert consume(raw, topic) == [*sent, b"after"]


def test_directory_chosen_before_the_partition_exists_is_used(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    wished = {}
    for number, path in enumerate(directories(cluster) * 3):
        name = f"{topic}-{number}"
        assert alter(raw, (path, name, [0])) == [(name, 0, UNKNOWN_PARTITION)]
        make_topic(cluster.bootstrap, name)
        wished[name] = path
    assert {name: places(raw, name)[0] for name in wished} == wished


def test_cordoned_directories_take_nothing(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    def cordon(value: str) -> None:
        setting = AlterableConfig(name="cordoned.log.dirs", config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[setting])
        [answer] = raw.request(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert answer.error_code == 0, answer.error_message

    make_topic(cluster.bootstrap, topic)
    [source] = places(raw, topic).values()
    [target] = {*directories(cluster)} - {source}
    try:
        cordon(target)
        await_true(lambda: [each.log_dir for each in describe(raw) if each.is_cordoned] == [target], "the setting to count")
        assert [each.is_cordoned for each in describe(raw, version=4)] == [False, False]
        assert alter(raw, (target, topic, [0])) == [(topic, 0, INVALID_ASSIGNMENT)]
        assert alter(raw, (target, "no-such-topic", [0])) == [("no-such-topic", 0, INVALID_ASSIGNMENT)]
        for number in range(3):
            make_topic(cluster.bootstrap, f"{topic}-{number}")
            assert places(raw, f"{topic}-{number}") == {0: source}
    finally:
        cordon("")
        await_true(lambda: not any(each.is_cordoned for each in describe(raw)), "the setting to be gone")
