"""Plain requests about offsets get Apache Kafka's answers: ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

import time
from collections.abc import Iterator

import pytest
from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import describe_topic, make_topic
from tests.support.servers.kafka_server import KafkaServer

from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NOW_MS = int(time.time() * 1000)
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
UNKNOWN_SERVER_ERROR, OUT_OF_RANGE, UNKNOWN_PARTITION, UNSUPPORTED_VERSION, INVALID_REQUEST = -1, 1, 3, 35, 42
INVALID_TOPIC, POLICY_VIOLATION, FENCED_EPOCH, UNKNOWN_EPOCH = 17, 44, 74, 75
NOTHING = (0, -1, -1, -1)


@pytest.fixture
def raw(cluster: KafkaServer) -> Iterator[RawClient]:
    with RawClient.to(cluster.bootstrap) as client:
        yield client


def fill(raw: RawClient, topic: str, timestamps: list[int], key: bytes | None = None) -> None:
    """A batch of three records for each timestamp, each record a millisecond later than the one before it."""
    for timestamp in timestamps:
        batch = bytes(make_batch(b"a", b"b", b"c", timestamp=timestamp, key=key))
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        response = raw.request(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
        assert response.responses[0].partition_responses[0].error_code == 0


@pytest.fixture
def filled(cluster: KafkaServer, raw: RawClient, topic: str) -> str:
    """Nine records in partition 0, the sixth with the largest timestamp; none in partition 1."""
    make_topic(cluster.bootstrap, topic, partitions=2)
    fill(raw, topic, [NOW_MS, NOW_MS + 10, NOW_MS + 5])
    return topic


def list_offset(
    raw: RawClient, topic: str, timestamp: int, version: int = 11, *, index: int = 0, epoch: int = -1, **more: int
) -> tuple[int, int, int, int]:
    """(error code, timestamp, offset, leader epoch)"""
    asked = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=more.get("replica", -1),
        isolation_level=more.get("isolation", 0),
        timeout_ms=more.get("timeout_ms", 0),
        topics=[ListOffsetsTopic(name=topic, partitions=[asked])],
    )
    [[found]] = [answer.partitions for answer in raw.request(request, version).topics]
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


def test_special_values_in_every_version(raw: RawClient, filled: str) -> None:
    cases = {
        LATEST: (1, (0, -1, 9, 0)),
        EARLIEST: (1, (0, -1, 0, 0)),
        MAX_TIMESTAMP: (7, (0, NOW_MS + 12, 5, 0)),
        EARLIEST_LOCAL: (8, (0, -1, 0, 0)),
        LATEST_TIERED: (9, NOTHING),
        PENDING_UPLOAD: (11, NOTHING),
        -7: (99, NOTHING),
    }
    for timestamp, (since, answer) in cases.items():
        for version in range(1, 12):
            expected = answer if version >= since else (UNSUPPORTED_VERSION, -1, -1, -1)
            if version < 4:
                expected = (*expected[:3], -1)
            assert list_offset(raw, filled, timestamp, version) == expected, (timestamp, version)


def test_by_time(raw: RawClient, filled: str) -> None:
    times = {-1: (0, 0), 0: (0, 0), 1: (1, 1), 3: (10, 3), 6: (10, 3), 12: (12, 5)}
    for after, (found_after, offset) in times.items():
        assert list_offset(raw, filled, NOW_MS + after) == (0, NOW_MS + found_after, offset, 0)
    assert list_offset(raw, filled, NOW_MS + 13) == NOTHING


def test_an_empty_partition(raw: RawClient, filled: str) -> None:
    for timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL):
        assert list_offset(raw, filled, timestamp, index=1) == (0, -1, 0, 0)
    for timestamp in (MAX_TIMESTAMP, LATEST_TIERED, PENDING_UPLOAD, NOW_MS):
        assert list_offset(raw, filled, timestamp, index=1) == NOTHING


def test_list_offsets_refusals(raw: RawClient, filled: str) -> None:
    unknown = (UNKNOWN_PARTITION, -1, -1, -1)
    assert list_offset(raw, "no-such-topic", LATEST) == list_offset(raw, filled, LATEST, index=7) == unknown
    assert list_offset(raw, filled, LATEST, index=-1) == list_offset(raw, "", LATEST) == unknown
    assert list_offset(raw, "__cluster_metadata", LATEST) == unknown
    assert [list_offset(raw, filled, LATEST, epoch=epoch)[0] for epoch in (-2, -1, 0, 1)] == [FENCED_EPOCH, 0, 0, UNKNOWN_EPOCH]
    assert [list_offset(raw, filled, LATEST, isolation=level)[0] for level in (0, 1, 2, -1)] == [0, 0, -1, -1]
    assert [list_offset(raw, filled, LATEST, replica=replica)[0] for replica in (-1, -2, -3, 1, 5)] == [0] * 5
    assert [list_offset(raw, filled, LATEST, timeout_ms=timeout_ms)[0] for timeout_ms in (-1, 0, 100)] == [0] * 3


def test_a_partition_asked_for_twice(raw: RawClient, filled: str) -> None:
    def asked(*indexes: int) -> ListOffsetsTopic:
        return ListOffsetsTopic(
            name=filled, partitions=[ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in indexes]
        )

    request = ListOffsetsRequest(replica_id=-1, topics=[asked(0), asked(0, 1)])
    [answer] = raw.request(request, 11).topics
    assert sorted((each.partition_index, each.error_code) for each in answer.partitions) == [(0, INVALID_REQUEST), (1, 0)]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_ends_of_leader_epochs(raw: RawClient, filled: str, version: int) -> None:
    def ask(epoch: int, current: int = -1, topic: str = filled, index: int = 0) -> tuple[int, int, int]:
        asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])])
        [[found]] = [answer.partitions for answer in raw.request(request, version).topics]
        return found.error_code, found.leader_epoch, found.end_offset

    assert ask(0) == ask(0, current=0) == (0, 0, 9)
    assert ask(0, index=1) == (0, 0, 0)
    assert ask(1) == ask(-1) == (0, -1, -1)
    assert ask(-2) == (0, -2, 0)
    assert ask(0, current=1) == (UNKNOWN_EPOCH, -1, -1)
    assert ask(0, current=-2) == (FENCED_EPOCH, -1, -1)
    assert ask(0, topic="no-such-topic") == ask(0, index=7) == (UNKNOWN_PARTITION, -1, -1)


def delete(raw: RawClient, *wanted: tuple[str, int, int], version: int = 2) -> list[tuple[str, int, int, int]]:
    """(topic, partition, error code, low watermark), sorted."""
    topics = [
        DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)])
        for topic, index, offset in wanted
    ]
    response = raw.request(DeleteRecordsRequest(topics=topics, timeout_ms=10_000), version)
    return sorted(
        (topic.name, each.partition_index, each.error_code, each.low_watermark)
        for topic in response.topics
        for each in topic.partitions
    )


def test_delete_records(raw: RawClient, filled: str) -> None:
    for version in (0, 1, 2):
        assert delete(raw, (filled, 0, 1 + version), version=version) == [(filled, 0, 0, 1 + version)]
    assert delete(raw, (filled, 0, 1)) == [(filled, 0, 0, 3)], "a lower offset brings nothing back"
    assert delete(raw, (filled, 0, 100)) == delete(raw, (filled, 0, -2)) == [(filled, 0, OUT_OF_RANGE, -1)]
    assert delete(raw, (filled, 0, 4), (filled, 0, 5)) == [(filled, 0, 0, 5)], "the last entry for a partition counts"
    assert delete(raw, (filled, 9, 1), (filled, 1, -1)) == [(filled, 1, 0, 0), (filled, 9, UNKNOWN_PARTITION, -1)]
    assert list_offset(raw, filled, EARLIEST) == (0, -1, 5, 0)
    assert list_offset(raw, filled, MAX_TIMESTAMP) == (0, NOW_MS + 12, 5, 0)
    assert delete(raw, (filled, 0, -1)) == [(filled, 0, 0, 9)]
    assert list_offset(raw, filled, EARLIEST) == list_offset(raw, filled, LATEST) == (0, -1, 9, 0)
    assert delete(raw) == []


def test_delete_records_by_policy(cluster: KafkaServer, raw: RawClient, topic: str) -> None:
    for policy in ("compact", "compact,delete"):
        name = f"{topic}-{policy.replace(',', '-')}"
        make_topic(cluster.bootstrap, name, configs={"cleanup.policy": policy})
        fill(raw, name, [NOW_MS], key=b"k")
        code, low_watermark = (POLICY_VIOLATION, -1) if policy == "compact" else (0, 2)
        assert delete(raw, (name, 0, 2)) == [(name, 0, code, low_watermark)]
    for unknown in ("no-such-topic", "__cluster_metadata", "bad name"):
        assert delete(raw, (unknown, 0, 1)) == [(unknown, 0, UNKNOWN_PARTITION, -1)]
    internal = "__consumer_offsets"
    if describe_topic(cluster.bootstrap, internal).error_code:
        make_topic(cluster.bootstrap, internal)
    assert delete(raw, (internal, 0, 1)) == [(internal, 0, INVALID_TOPIC, -1)]
