"""Limits on the elements of a request, so that a small frame from any client cannot cost much memory or time."""

import time
import tracemalloc

import pytest

from ottla.errors import DecodeError
from ottla.wire import decode, encode_bytes, interpreter
from ottla.wire.binding import binding_of
from ottla.wire.interpreter import REQUEST_ELEMENTS_MAX
from ottla.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from ottla.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from ottla.wire.messages.produce import ProduceRequest, TopicProduceData
from ottla.wire.varint import encode_uvarint

HEAD = b"\0\xff\xff\0\0\0\1"
"""The beginning of a Produce request in version 9: no transaction, acks, a timeout."""


def topics(count: int) -> bytes:
    """A Produce request with `count` topics of three bytes each."""
    return HEAD + encode_uvarint(count + 1) + b"\1\1\0" * count + b"\0"


def test_a_request_with_the_most_elements_allowed_is_decoded() -> None:
    message, _ = decode(ProduceRequest, 9, topics(1000))
    assert len(message.topic_data) == 1000
    largest = ProduceRequest(transactional_id=None, topic_data=[TopicProduceData()] * REQUEST_ELEMENTS_MAX)
    decoded, _ = decode(ProduceRequest, 9, encode_bytes(largest, 9))
    assert len(decoded.topic_data) == REQUEST_ELEMENTS_MAX


def test_too_many_elements_are_refused_before_any_is_decoded() -> None:
    data = topics(10_000_000)
    tracemalloc.start()
    with pytest.raises(DecodeError, match="ProduceRequest has more than 65536 elements"):
        decode(ProduceRequest, 9, data)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    with pytest.raises(DecodeError, match="more than 65536 elements"):
        interpreter.decode(binding_of(ProduceRequest), 9, data)


def test_arrays_within_arrays_count_together() -> None:
    partitions = list(range(20_000))
    message = DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="t", partitions=partitions)] * 3)
    assert decode(DescribeLogDirsRequest, 1, encode_bytes(message, 1))[0] == message
    message.topics *= 2
    with pytest.raises(DecodeError, match="more than 65536 elements"):
        decode(DescribeLogDirsRequest, 1, encode_bytes(message, 1))


def test_unknown_tagged_fields_count_too() -> None:
    def tagged(count: int) -> bytes:
        return HEAD + b"\1" + encode_uvarint(count) + b"\x7f\0" * count

    assert len(decode(ProduceRequest, 9, tagged(5_000))[0].unknown_tags) == 5_000
    with pytest.raises(DecodeError, match="more than 65536 elements"):
        decode(ProduceRequest, 9, tagged(2_000_000))


def test_a_large_request_that_is_damaged_is_refused_quickly() -> None:
    data = topics(REQUEST_ELEMENTS_MAX - 1)[:-1]
    begun_s = time.process_time()
    with pytest.raises(DecodeError, match="too many elements to say where"):
        decode(ProduceRequest, 9, data)
    assert time.process_time() - begun_s < 2
    with pytest.raises(DecodeError, match="100 elements are announced"):
        decode(ProduceRequest, 9, topics(100)[:-2])


def test_responses_have_no_element_limit() -> None:
    message = MetadataResponse(topics=[MetadataResponseTopic(name="t")] * (REQUEST_ELEMENTS_MAX + 1))
    assert len(decode(MetadataResponse, 1, encode_bytes(message, 1))[0].topics) == REQUEST_ELEMENTS_MAX + 1
