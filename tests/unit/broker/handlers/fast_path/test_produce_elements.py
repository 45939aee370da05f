"""Counting the partitions of Produce frames agrees with parsing them, in every version."""

import pytest

from ottla.broker.handlers.fast_path.produce_frames import has_many_elements
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_request
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE = APIS[ApiKey.PRODUCE]
VERSIONS = range(PRODUCE.oldest, PRODUCE.newest + 1)


def frame_of(topics: list[TopicProduceData], version: int) -> bytearray:
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics)
    return bytearray(join_parts(encode_request(request, version, 5, "client"))[4:])


def topic(partitions: int, records: bytes | None = b"x" * 200) -> TopicProduceData:
    return TopicProduceData(name="t", partition_data=[PartitionProduceData(index=1, records=records)] * partitions)


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_and_partitions_are_counted(version: int) -> None:
    frame = frame_of([topic(3), topic(0), topic(2, None)], version)
    assert has_many_elements(frame, 7)
    assert not has_many_elements(frame, 8)


@pytest.mark.parametrize("version", VERSIONS)
def test_frames_that_end_early_have_few_elements(version: int) -> None:
    frame = frame_of([topic(3)], version)
    for end in range(len(frame)):
        assert not has_many_elements(frame[:end], 4)


def test_counting_stops_at_many_tags() -> None:
    version = PRODUCE.newest
    frame = frame_of([topic(1)], version)
    assert frame[-1] == 0  # no tags at the end of the request
    topic_tags_at = len(frame) - 2
    frame[topic_tags_at:] = b"\xff\xff\xff\x7f" + bytes(1000)
    assert has_many_elements(frame, 100)
