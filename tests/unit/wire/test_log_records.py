"""Keys and values of internal logs, compared with Apache Kafka's own serdes where Kafka is installed."""

from pathlib import Path

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.errors import DecodeError
from ottla.ids import METADATA_TOPIC_ID
from ottla.wire import EncodeError, UnsupportedVersion
from ottla.wire.json_form import to_json
from ottla.wire.log_records import (
    InternalLog,
    LogRecord,
    UnknownRecordType,
    UnknownRecordVersion,
    coordinator_classes,
    decode_coordinator_key,
    decode_coordinator_value,
    decode_metadata_record,
    encode_coordinator_key,
    encode_coordinator_value,
    encode_metadata_record,
    metadata_class,
)
from ottla.wire.messages.consumer_group_records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from ottla.wire.messages.metadata_records import PartitionRecord, TopicRecord
from ottla.wire.messages.offset_records import OffsetCommitKey, OffsetCommitValue
from ottla.wire.messages.produce import ProduceRequest
from ottla.wire.messages.producer_snapshot import ProducerSnapshot
from ottla.wire.messages.remote_log_records import RemotePartitionDeleteMetadataRecord
from ottla.wire.messages.share_state_records import ShareSnapshotKey
from ottla.wire.messages.transaction_records import TransactionLogKey, TransactionLogValue

TOPIC = TopicRecord(name="a", topic_id=METADATA_TOPIC_ID)
TOPIC_BYTES = bytes.fromhex("01020002610000000000000000000000000000000100")

PRINT_RECORDS = """
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;

public class PrintRecords {
    public static void main(String[] arguments) throws Exception {
        for (int index = 0; index < arguments.length; index += 3) {
            byte[] key = HexFormat.of().parseHex(arguments[index + 1]);
            byte[] value = HexFormat.of().parseHex(arguments[index + 2]);
            if (arguments[index].equals("metadata")) {
                System.out.println(org.apache.kafka.metadata.MetadataRecordSerde.INSTANCE
                    .read(new ByteBufferAccessor(ByteBuffer.wrap(value)), value.length));
            } else {
                System.out.println(new org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde()
                    .deserialize(ByteBuffer.wrap(key), ByteBuffer.wrap(value)));
            }
        }
    }
}
"""


def test_metadata_record() -> None:
    assert encode_metadata_record(TOPIC, 0) == TOPIC_BYTES
    assert decode_metadata_record(TOPIC_BYTES) == LogRecord(TOPIC, 0)
    assert decode_metadata_record(memoryview(TOPIC_BYTES)).message == TOPIC
    assert to_json(TOPIC, 0) == {"name": "a", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}


@pytest.mark.parametrize("size", range(len(TOPIC_BYTES)))
def test_cut_metadata_record(size: int) -> None:
    with pytest.raises(DecodeError):
        decode_metadata_record(TOPIC_BYTES[:size])


def test_metadata_record_refuses_what_kafka_refuses() -> None:
    with pytest.raises(DecodeError, match="1 more bytes follow"):
        decode_metadata_record(TOPIC_BYTES + b"x")
    with pytest.raises(DecodeError, match="frame version 2"):
        decode_metadata_record(b"\x02" + TOPIC_BYTES[1:])
    with pytest.raises(UnknownRecordType, match="no record type 99") as caught:
        decode_metadata_record(b"\x01\x63" + TOPIC_BYTES[2:])
    assert caught.value.record_type == 99
    with pytest.raises(UnknownRecordVersion, match="TopicRecord of version 9"):
        decode_metadata_record(b"\x01\x02\x09" + TOPIC_BYTES[3:])


def test_metadata_record_types() -> None:
    assert metadata_class(3) is PartitionRecord
    assert metadata_class(2, InternalLog.REMOTE_LOG_METADATA) is RemotePartitionDeleteMetadataRecord
    record = RemotePartitionDeleteMetadataRecord(broker_id=4)
    data = encode_metadata_record(record, 0)
    assert decode_metadata_record(data, InternalLog.REMOTE_LOG_METADATA) == LogRecord(record, 0)
    with pytest.raises(EncodeError, match="not a record of a metadata log"):
        encode_metadata_record(ProducerSnapshot(), 1)


def test_coordinator_record() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=7)
    value = OffsetCommitValue(offset=42, metadata="", commit_timestamp=5)
    key_bytes, value_bytes = encode_coordinator_key(key), encode_coordinator_value(value, 3)
    assert key_bytes == b"\0\x01\0\x01g\0\x01t\0\0\0\x07"
    assert value_bytes[:2] == b"\0\x03"
    decoded = decode_coordinator_key(InternalLog.GROUPS, key_bytes)
    assert decoded == key
    assert decode_coordinator_value(InternalLog.GROUPS, decoded, value_bytes) == LogRecord(value, 3)


def test_types_are_numbered_per_log() -> None:
    assert coordinator_classes(InternalLog.TRANSACTIONS, 0) == (TransactionLogKey, TransactionLogValue)
    assert coordinator_classes(InternalLog.SHARE_STATE, 0)[0] is ShareSnapshotKey
    assert coordinator_classes(InternalLog.GROUPS, 1) == (OffsetCommitKey, OffsetCommitValue)
    for record_type in [*range(9), *range(10, 18), *range(19, 24)]:
        key_class, value_class = coordinator_classes(InternalLog.GROUPS, record_type)
        assert key_class.__name__.removesuffix("Key") == value_class.__name__.removesuffix("Value")
    with pytest.raises(UnknownRecordType):
        coordinator_classes(InternalLog.GROUPS, 9)


def test_coordinator_record_is_read_as_kafka_reads_it() -> None:
    key = decode_coordinator_key(InternalLog.GROUPS, b"\0\x03\0\x01a" + b"ignored")
    assert key == ConsumerGroupMetadataKey(group_id="a")
    value = decode_coordinator_value(InternalLog.GROUPS, key, b"\0\0\0\0\0\x05\0" + b"ignored")
    assert value == LogRecord(ConsumerGroupMetadataValue(epoch=5), 0)
    with pytest.raises(UnknownRecordType, match="99"):
        decode_coordinator_key(InternalLog.GROUPS, b"\0\x63\0\x01a")
    with pytest.raises(UnknownRecordVersion, match="version 9"):
        decode_coordinator_value(InternalLog.GROUPS, key, b"\0\x09\0\0\0\x05\0")
    with pytest.raises(DecodeError, match="too few"):
        decode_coordinator_key(InternalLog.GROUPS, b"\0")
    with pytest.raises(DecodeError, match="too few"):
        decode_coordinator_value(InternalLog.GROUPS, key, b"")
    with pytest.raises(UnsupportedVersion):
        encode_coordinator_value(ConsumerGroupMetadataValue(), 4)


def test_requests_are_not_log_records() -> None:
    with pytest.raises(UnsupportedVersion):
        encode_coordinator_key(ProduceRequest())


def test_apache_kafka_reads_our_records(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    key = encode_coordinator_key(OffsetCommitKey(group="g", topic="t", partition=7)).hex()
    value = encode_coordinator_value(OffsetCommitValue(offset=42, leader_epoch=3, metadata="m", commit_timestamp=5), 3).hex()
    source = tmp_path / "PrintRecords.java"
    source.write_text(PRINT_RECORDS)
    arguments = ["metadata", "", encode_metadata_record(TOPIC, 0).hex(), "group", key, value]
    topic, offset = apache_kafka.run_java(source, *arguments).stdout.splitlines()
    assert topic == "ApiMessageAndVersion(TopicRecord(name='a', topicId=AAAAAAAAAAAAAAAAAAAAAQ) at version 0)"
    assert "OffsetCommitKey(group='g', topic='t', partition=7)" in offset
    assert "offset=42, leaderEpoch=3, metadata='m', commitTimestamp=5" in offset
    assert "at version 3" in offset
