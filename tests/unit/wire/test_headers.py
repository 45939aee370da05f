"""Whole requests and responses: header versions, the ApiVersions rule, frame sizes with file ranges in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import DecodeError
from ottla.wire import EncodeError, UnsupportedVersion, decode, encode_bytes, join_parts
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.headers import (
    HEADER_TAGS_MAX,
    encode_request,
    encode_response,
    parse_request,
    read_request_header,
    read_response_header,
    request_header_version,
    response_header_version,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from ottla.wire.messages.headers import RequestHeader, ResponseHeader
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.varint import encode_uvarint


class Range:
    """Stands for a range of a file."""

    def __init__(self, length: int) -> None:
        self.position, self.length = 0, length

    def __len__(self) -> int:
        return self.length

    def read(self) -> bytes:
        return b"r" * self.length


NAMES = st.none() | st.text(max_size=9)


def test_header_versions() -> None:
    assert request_header_version(ApiKey.PRODUCE, 8) == 1
    assert request_header_version(ApiKey.PRODUCE, 9) == 2
    assert request_header_version(ApiKey.SASL_HANDSHAKE, 1) == 1
    assert request_header_version(ApiKey.CONTROLLED_SHUTDOWN, 0) == 0
    assert request_header_version(ApiKey.API_VERSIONS, 99) == 2
    assert response_header_version(ApiKey.METADATA, 8) == 0
    assert response_header_version(ApiKey.METADATA, 9) == 1
    assert response_header_version(ApiKey.API_VERSIONS, 4) == 0
    with pytest.raises(DecodeError, match="no API with the key 9999"):
        request_header_version(9999, 0)


@given(
    st.sampled_from(sorted(APIS)), st.integers(0, 20), st.integers(-(1 << 31), (1 << 31) - 1), st.none() | st.text(max_size=9)
)
def test_request_header_is_the_schemas_header(api_key: int, version: int, correlation_id: int, client_id: str | None) -> None:
    header = RequestHeader(
        request_api_key=api_key, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    header_version = request_header_version(api_key, version)
    if header_version == 0:
        return
    data = bytearray(encode_bytes(header, header_version)) + b"body"
    assert read_request_header(data) == (header, len(data) - 4)
    for size in range(len(data) - 4):
        with pytest.raises(DecodeError):
            read_request_header(data[:size])


def test_controlled_shutdown_0_had_a_header_without_client_id() -> None:
    header, body = read_request_header(b"\0\x07\0\0\0\0\0\x05" + b"body")
    assert (header.request_api_key, header.correlation_id, body) == (7, 5, 8)


def test_header_keeps_unknown_tags_and_survives_bad_utf8() -> None:
    header = RequestHeader(request_api_key=3, request_api_version=12, correlation_id=1, client_id="xy")
    header.unknown_tags = [(0, b"abc"), (300, b"")]
    data = encode_bytes(header, 2)
    assert read_request_header(data) == (header, len(data))
    assert read_request_header(data.replace(b"xy", b"x\xff"))[0].client_id == "x\ufffd"


def test_parse_request_ignores_bytes_after_the_body() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    frame = join_parts(encode_request(request, 12, 77, "me"))
    header, body = parse_request(frame[4:] + b"more")
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert (header.correlation_id, header.client_id, body) == (77, "me", request)


def test_records_of_a_request_are_views_of_the_frame() -> None:
    partition = PartitionProduceData(index=1, records=b"batch")
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    frame = bytearray(join_parts(encode_request(request, 9, 1, None))[4:])
    _, body = parse_request(frame)
    records = body.topic_data[0].partition_data[0].records
    records[:] = b"BATCH"
    assert b"BATCH" in frame


def test_unknown_version_of_api_versions_is_let_through() -> None:
    frame = join_parts(encode_request(ApiVersionsRequest(client_software_name="x"), 3, 5, "c"))[4:]
    newer = frame[:2] + b"\0\x63" + frame[4:]
    header, body = parse_request(newer)
    assert header.request_api_version == 99
    assert body == ApiVersionsRequest()


def test_unknown_versions_and_keys_are_refused() -> None:
    frame = join_parts(encode_request(MetadataRequest(), 12, 5, "c"))[4:]
    with pytest.raises(UnsupportedVersion, match="no version 99"):
        parse_request(frame[:2] + b"\0\x63" + frame[4:])
    with pytest.raises(DecodeError, match="no API"):
        parse_request(b"\x7f\xff" + frame[2:])
    with pytest.raises(DecodeError, match="removed"):
        parse_request(b"\0\x04\0\0\0\0\0\x05\xff\xff")
    with pytest.raises(DecodeError, match="too short"):
        parse_request(b"")


def test_response_frame_counts_file_ranges() -> None:
    records = Range(70_000)
    partitions = [PartitionData(partition_index=0, records=records), PartitionData(partition_index=1, records=b"xyz")]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts = encode_response(response, 12, 9)
    assert records in parts
    assert b"xyz" in parts
    joined = b"".join(part.read() if isinstance(part, Range) else bytes(part) for part in parts)  # type: ignore[arg-type]
    assert int.from_bytes(joined[:4], "big") == len(joined) - 4
    correlation_id, body = read_response_header(joined[4:], ApiKey.FETCH, 12)
    decoded, end = decode(FetchResponse, 12, joined[4:], body)
    assert (correlation_id, end) == (9, len(joined) - 4)
    assert decoded.responses[0].partitions[0].records == b"r" * 70_000
    with pytest.raises(EncodeError, match="file range"):
        join_parts(parts)


def test_response_headers() -> None:
    flexible = join_parts(encode_response(MetadataResponse(), 12, 3))
    assert flexible[4:9] == b"\0\0\0\x03\0"
    api_versions = join_parts(encode_response(ApiVersionsResponse(error_code=35), 4, 3))
    assert api_versions[4:10] == b"\0\0\0\x03\0\x23"
    assert read_response_header(encode_bytes(ResponseHeader(correlation_id=4), 1), ApiKey.METADATA, 12) == (4, 5)
    with pytest.raises(DecodeError, match="too short"):
        read_response_header(b"\0\0", ApiKey.METADATA, 12)
    with pytest.raises(DecodeError, match="tagged field 7"):
        read_response_header(b"\0\0\0\x01\x01\x07\x09abc", ApiKey.METADATA, 12)


def test_frames_beyond_int32_are_refused() -> None:
    partitions = [PartitionData(records=Range((1 << 31) - 50))]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    with pytest.raises(EncodeError, match="frame"):
        encode_response(response, 11, 9)
    with pytest.raises(EncodeError, match="RequestHeader"):
        encode_request(MetadataRequest(), 12, 1 << 40, "c")


def test_header_with_too_many_tags_is_refused_before_they_are_read() -> None:
    announced = b"\0\x03\0\x09\0\0\0\x05\xff\xff" + encode_uvarint(HEADER_TAGS_MAX + 1)
    with pytest.raises(DecodeError, match="1001 tagged fields"):
        read_request_header(announced)
    allowed = announced[:-2] + encode_uvarint(HEADER_TAGS_MAX) + b"\x64\0" * HEADER_TAGS_MAX
    assert read_request_header(allowed)[1] == len(allowed)
