"""The codec's entry points: encode errors name the field, decode errors name the field and the position."""

from typing import Any

import pytest

from ottla.errors import DecodeError
from ottla.ids import Uuid
from ottla.wire import (
    EncodeError,
    UnsupportedVersion,
    decode,
    decode_all,
    decoder,
    encode,
    encode_bytes,
    encoder,
    interpreter,
    join_parts,
)
from ottla.wire.binding import binding_of
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasRequestEntryData, OpData
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.envelope import EnvelopeRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from ottla.wire.messages.fetch_snapshot import FetchSnapshotResponse
from ottla.wire.messages.fetch_snapshot import FetchSnapshotResponsePartitionSnapshot as SnapshotPartition
from ottla.wire.messages.fetch_snapshot import FetchSnapshotResponseTopicSnapshot as SnapshotTopic
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.metadata_records import NoOpRecord
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.streams_group_describe import StreamsGroupDescribeResponse
from ottla.wire.messages.vote import VoteRequest


def topic(**fields: Any) -> ProduceRequest:
    return ProduceRequest(topic_data=[TopicProduceData(), TopicProduceData(**fields)])


def unaligned(records: Any) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(topics=[SnapshotTopic(partitions=[SnapshotPartition(unaligned_records=records)])])


@pytest.mark.parametrize(
    ("message", "version", "path", "what"),
    [
        (ProduceRequest(acks=40000), 9, "ProduceRequest.acks", "40000 is not a number from -32768 to 32767"),
        (ProduceRequest(acks=40000), 3, "ProduceRequest.acks", "int16"),
        (ProduceRequest(acks=1.5), 9, "ProduceRequest.acks", "1.5 is not a number"),
        (topic(name=None), 9, "ProduceRequest.topic_data[1].name", "None|null"),
        (topic(name="x" * 32768), 3, "ProduceRequest.topic_data[1].name", "32768 bytes is longer"),
        (topic(name="x" * 32768), 9, "ProduceRequest.topic_data[1].name", "32768 bytes is longer"),
        (topic(name="\ud800"), 9, "ProduceRequest.topic_data[1].name", "cannot be written as UTF-8"),
        (topic(name=5), 9, "ProduceRequest.topic_data[1].name", "5 is not a text"),
        (topic(topic_id=b"short"), 13, "ProduceRequest.topic_data[1].topic_id", "not a UUID of 16 bytes"),
        (topic(topic_id=b"x" * 17), 13, "ProduceRequest.topic_data[1].topic_id", "not a UUID of 16 bytes"),
        (topic(partition_data=None), 9, "ProduceRequest.topic_data[1].partition_data", "null"),
        (topic(partition_data=[3]), 9, "ProduceRequest.topic_data[1].partition_data[0]", "3 is not a PartitionProduceData"),
        (ProduceRequest(topic_data=7), 9, "ProduceRequest.topic_data", "7 is not a list"),
        (MetadataRequest(topics=None), 0, "MetadataRequest.topics", "null, which this field may not be in version 0"),
        (JoinGroupRequest(protocols=None), 2, "JoinGroupRequest.protocols", "null"),
        (CreateTopicsRequest(topics=[CreatableTopic(replication_factor=1 << 15)]), 5, "topics[0].replication_factor", "32768"),
        (EnvelopeRequest(request_data=None), 0, "EnvelopeRequest.request_data", "null"),
        (unaligned(None), 0, "FetchSnapshotResponse.topics[0].partitions[0].unaligned_records", "null"),
        (
            AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(ops=[OpData(value=10**400)])]),
            0,
            "value",
            "float64",
        ),
    ],
)
def test_encode_error_names_the_field(message: Any, version: int, path: str, what: str) -> None:
    with pytest.raises(EncodeError, match=what) as caught:
        encode(message, version)
    assert path in caught.value.path
    assert str(caught.value).startswith(caught.value.path)


@pytest.mark.parametrize("version", [-1, 2, 14, 1000])
def test_versions_that_do_not_exist(version: int) -> None:
    for call in (encoder, decoder):
        with pytest.raises(UnsupportedVersion, match=f"no version {version}; the versions are 3 to 13"):
            call(ProduceRequest, version)


def test_a_field_that_a_version_lacks_may_be_dropped_only_if_ignorable() -> None:
    rack_is_ignorable = FetchRequest(rack_id="a", max_bytes=7)
    assert decode_all(FetchRequest, 4, encode_bytes(rack_is_ignorable, 4)) == FetchRequest(max_bytes=7)
    state_is_not = FetchRequest(replica_state=ReplicaState(replica_id=3))
    with pytest.raises(UnsupportedVersion, match="version 14 has no such field") as caught:
        encode(state_is_not, 14)
    assert caught.value.path == "FetchRequest.replica_state"
    assert decode_all(FetchRequest, 14, encode_bytes(FetchRequest(replica_state=ReplicaState()), 14)) == FetchRequest()
    with pytest.raises(UnsupportedVersion, match=r"replica_id: it is set to 3"):
        encode(FetchRequest(replica_id=3), 15)


def test_tagged_fields_at_their_default_are_left_out() -> None:
    plain = encode_bytes(ApiVersionsResponse(), 3)
    assert encode_bytes(ApiVersionsResponse(finalized_features_epoch=-1, supported_features=[]), 3) == plain
    features = [SupportedFeatureKey(name="f", max_version=1)]
    tagged = encode_bytes(ApiVersionsResponse(zk_migration_ready=True, supported_features=features), 3)
    assert tagged == plain[:-1] + b"\x02" + b"\x00\x08\x02\x02f\x00\x00\x00\x01\x00" + b"\x03\x01\x01"


def test_unknown_tags_are_kept_in_order_and_refused_where_they_cannot_go() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    request.unknown_tags = [(5, b"five"), (2, b"")]
    data = encode_bytes(request, 12)
    assert data.endswith(b"\x02\x02\x00\x05\x04five")
    assert decode_all(MetadataRequest, 12, data).unknown_tags == [(2, b""), (5, b"five")]
    with pytest.raises(UnsupportedVersion, match="tagged fields, which version 8 cannot carry"):
        encode(request, 8)
    twice = ApiVersionsResponse()
    twice.unknown_tags = [(1, b"known")]
    with pytest.raises(EncodeError, match="unknown tagged field 1"):
        encode(twice, 3)


def test_unknown_tag_among_known_ones() -> None:
    data = encode_bytes(ApiVersionsResponse(finalized_features_epoch=8), 3)
    assert data.endswith(b"\x01\x01\x08" + (8).to_bytes(8, "big"))
    more = data.replace(b"\x01\x01\x08", b"\x02\x01\x08") + b"\x63\x02hi"
    message = decode_all(ApiVersionsResponse, 3, more)
    assert (message.finalized_features_epoch, message.unknown_tags) == (8, [(99, b"hi")])
    assert encode_bytes(message, 3) == more


def test_parts_keep_records_as_they_are() -> None:
    records = bytearray(b"batch")
    request = ProduceRequest(topic_data=[TopicProduceData(partition_data=[PartitionProduceData(records=records)])])
    parts = encode(request, 9, b"head")
    assert [type(part) for part in parts] == [bytes, bytearray, bytes]
    assert parts[1] is records
    assert bytes(parts[0][:4]) == b"head"  # type: ignore[index,arg-type]  # bytes
    assert join_parts(parts) == b"head" + encode_bytes(request, 9)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_types_of_decoded_values(kind: Any) -> None:
    group = JoinGroupRequest()
    group.protocols = []
    request = EnvelopeRequest(request_data=b"view", request_principal=b"copied", client_host_address=b"h")
    buffer = kind(encode_bytes(request, 0))
    decoded = decode_all(EnvelopeRequest, 0, buffer)
    assert isinstance(decoded.request_data, memoryview)
    assert type(decoded.request_principal) is bytes
    vote = decode_all(VoteRequest, 0, kind(encode_bytes(VoteRequest(cluster_id="c"), 0)))
    assert type(vote.cluster_id) is str


def test_decoding_starts_at_the_given_position() -> None:
    data = encode_bytes(NoOpRecord(), 0) + encode_bytes(ApiVersionsRequest(client_software_name="n"), 3)
    _, position = decode(NoOpRecord, 0, data)
    request, end = decode(ApiVersionsRequest, 3, data, position)
    assert (request.client_software_name, end) == ("n", len(data))
    with pytest.raises(DecodeError, match="1 more bytes follow") as caught:
        decode_all(ApiVersionsRequest, 3, data + b"x", position)
    assert caught.value.position == len(data)


def test_invalid_utf8_is_decoded_as_in_kafka() -> None:
    data = encode_bytes(ApiVersionsRequest(client_software_name="name", client_software_version="1"), 3)
    request = decode_all(ApiVersionsRequest, 3, data.replace(b"name", b"n\xffm\xc3"))
    assert request.client_software_name == "n\ufffdm\ufffd"


@pytest.mark.parametrize(
    ("cls", "version", "data", "path", "position"),
    [
        (MetadataRequest, 0, b"\x7f\xff\xff\xff", "MetadataRequest.topics", 4),
        (MetadataRequest, 12, b"\xff\xff\xff\xff\x0f", "MetadataRequest.topics", 5),
        (MetadataRequest, 0, b"\xff\xff\xff\xff", "MetadataRequest.topics", 4),
        (MetadataRequest, 0, b"\0\0\0\x01\0\x05abc", r"MetadataRequest.topics\[0\].name", 6),
        (MetadataRequest, 0, b"\0\0\0\x01\xff\xff", r"MetadataRequest.topics\[0\].name", 6),
        (MetadataRequest, 12, b"\xff\xff\xff\xff\xff\x0f", "MetadataRequest.topics", 5),
        (ApiVersionsRequest, 3, b"\x02a\x81\x80\x02" + b"x" * 40000, "ApiVersionsRequest.client_software_version", 5),
        (ApiVersionsRequest, 3, b"\x01\x01\x01\x05\x09abc", "ApiVersionsRequest tagged field 5", 5),
        (ApiVersionsResponse, 3, b"\0\0\x01\0\0\0\0\x01\x01\x09" + bytes(9), "finalized_features_epoch", 18),
        (ProduceRequest, 9, b"", "ProduceRequest.transactional_id", 0),
    ],
)
def test_decode_error_names_field_and_position(cls: Any, version: int, data: bytes, path: str, position: int) -> None:
    for call in (decode, interpreted):
        with pytest.raises(DecodeError, match=path) as caught:
            call(cls, version, data)
        assert caught.value.position == position
        assert f"at byte {position}" in str(caught.value)


def interpreted(cls: Any, version: int, data: bytes) -> Any:
    return interpreter.decode(binding_of(cls), version, data)


def test_nested_structs_can_be_null() -> None:
    assert decode_all(StreamsGroupDescribeResponse, 0, encode_bytes(StreamsGroupDescribeResponse(), 0)).groups == []
    fetch = FetchRequest(topics=[FetchTopic(topic_id=Uuid(b"t" * 16), partitions=[FetchPartition(partition=1)])])
    decoded = decode_all(FetchRequest, 17, encode_bytes(fetch, 17))
    assert decoded == fetch
    assert decoded.replica_state is None
