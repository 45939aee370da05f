"""Valid requests that are as expensive as a client without privileges can make them, as bytes to send."""

from typing import Any

from tests.support.logs.batches import T0

from ottla.records.builder import build_batch
from ottla.records.compression import Codec, compress
from ottla.records.layout import HEADER_SIZE
from ottla.records.patch import set_max_timestamp, set_shape
from ottla.records.record import Record
from ottla.wire.base import Message
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_request
from ottla.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

MEGABYTE = 1 << 20


def frame(message: Message, version: int) -> bytes:
    return join_parts(encode_request(message, version, 1, "attacker"))


def produce(topic: str, *batches: bytes, version: int = 9, first_index: int = 0) -> bytes:
    """A Produce request with one batch for each partition."""
    parts = [PartitionProduceData(index=first_index + number, records=batch) for number, batch in enumerate(batches)]
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=parts)])
    return frame(request, version)


def two_letters(size_bytes: int) -> bytes:
    """Two letters in an order that repeats after 33,000: just out of reach of gzip's window, so that it searches in vain."""
    state, period = 1, bytearray()
    for _ in range(33_000):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF
        period.append(b"ab"[state >> 16 & 1])
    return bytes(period * (size_bytes // len(period) + 1))[:size_bytes]


def one_record(value: bytes, codec: Codec = Codec.ZSTD, level: int | None = None, **more: Any) -> bytes:
    """A batch of one record, compressed as well as `level` can."""
    plain = build_batch([Record(0, T0, b"k", value, ())], **more)
    batch = bytearray(plain[:HEADER_SIZE])
    batch += compress(codec, memoryview(plain)[HEADER_SIZE:], level)
    set_shape(batch, 0, len(batch), codec)
    return bytes(batch)


def many_records(count: int) -> bytes:
    """A valid batch of records without keys and values, of which the last is one millisecond later than the others."""
    plain = build_batch([Record(number, T0 + (number == count - 1), None, None, ()) for number in range(count)])
    batch = bytearray(plain[:HEADER_SIZE])
    batch += compress(Codec.ZSTD, memoryview(plain)[HEADER_SIZE:], 9)
    set_shape(batch, 0, len(batch), Codec.ZSTD)
    return bytes(batch)


def lying_bomb(size_bytes: int = 120 * MEGABYTE) -> bytes:
    """A batch of 4 KB whose header claims a later timestamp than its one record, of `size_bytes`, has."""
    batch = bytearray(one_record(bytes(size_bytes)))
    set_max_timestamp(batch, 0, T0 + 1_000_000)
    return bytes(batch)


def offsets_by_time(topic: str, timestamp: int, partitions: int = 1) -> bytes:
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=timestamp) for index in range(partitions)]
    return frame(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]), 5)


def producers(topic: str, times: int) -> bytes:
    return frame(DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0] * times)]), 0)
