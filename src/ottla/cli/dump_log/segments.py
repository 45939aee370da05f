"""Rows of a file of record batches: a log segment, or a snapshot of the cluster metadata.

Batches are read one at a time. A batch with a wrong CRC is shown with `isvalid: false`. From the first position that cannot be
a batch the rest of the file is reported as invalid bytes: the start of the next batch is unknown. Records of Kafka's internal
topics are shown as JSON, as Kafka's tool does. One that cannot be decoded is shown as unreadable, and the dump continues: a
newer release may have written it.
"""

import base64
import json
import posixpath
import re
from collections.abc import Callable, Iterator
from struct import Struct
from struct import error as struct_error
from typing import Any

from ottla.cli.dump_log.rows import DumpOptions, Kind, RecordDecoder, Row, Rows, problem
from ottla.env import File
from ottla.errors import CorruptFile, CorruptRecords, DecodeError, OttlaError
from ottla.errors.texts import counted
from ottla.log.names import InvalidFolderName, parse_folder_name
from ottla.log.segments.scan import headers, whole_batch
from ottla.records.batch import BatchView, sequence_after
from ottla.records.control import ControlRecord, ControlType, parse_control, parse_end_marker
from ottla.records.layout import NO_SEQUENCE
from ottla.records.reader import read_records
from ottla.records.record import Record
from ottla.wire import Message, decode
from ottla.wire.consumer_protocol import read_assignment, read_subscription, version_of
from ottla.wire.json_form import to_json
from ottla.wire.log_records import (
    InternalLog,
    decode_coordinator_key,
    decode_coordinator_value,
    decode_metadata_record,
)
from ottla.wire.messages.classic_group_records import GroupMetadataValue
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)

# type → (the word Kafka's tool puts before the record, its schema)
_EVENTS: dict[int, tuple[str, type[Message]]] = {
    ControlType.LEADER_CHANGE: ("LeaderChange", LeaderChangeMessage),
    ControlType.SNAPSHOT_HEADER: ("SnapshotHeader", SnapshotHeaderRecord),
    ControlType.SNAPSHOT_FOOTER: ("SnapshotFooter", SnapshotFooterRecord),
    ControlType.KRAFT_VERSION: ("KRaftVersion", KRaftVersionRecord),
    ControlType.KRAFT_VOTERS: ("KRaftVoters", VotersRecord),
}


def control_fields(record: Record) -> dict[str, object]:
    """The fields to show of a control record. One that cannot be read is shown as unreadable, and the dump continues."""
    try:
        control = parse_control(record)
        if control.type in (ControlType.ABORT, ControlType.COMMIT):
            marker = parse_end_marker(record)
            return {
                "endTxnMarker": "COMMIT" if marker.is_commit else "ABORT",
                "coordinatorEpoch": marker.coordinator_epoch,
            }
        return _event_fields(control)
    except OttlaError as damage:
        return {"controlType": f"unreadable ({damage})"}


def _event_fields(control: ControlRecord) -> dict[str, object]:
    if control.type not in _EVENTS:
        return {"controlType": f"UNKNOWN({control.type})"}
    word, schema = _EVENTS[control.type]
    # The schemas begin with the version field, which `parse_control` has already removed.
    body = control.version.to_bytes(2, "big", signed=True) + control.body
    if control.version < 0:
        raise DecodeError(f"version {control.version} is negative")
    message, _ = decode(schema, control.version, body)
    return {word: to_json(message, control.version)}


BytesDecoder = Callable[[bytes], object]


def _number(layout: str, what: str) -> BytesDecoder:
    unpack = Struct(layout).unpack

    def decode(data: bytes) -> object:
        try:
            return unpack(data)[0]
        except struct_error:
            return f"<{counted(len(data), 'byte')}, not {what}: 0x{data[:32].hex()}{'…' if len(data) > 32 else ''}>"

    return decode


def _string(data: bytes) -> object:
    return data.decode("utf-8", "replace")


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return _string(data)


DECODERS: dict[str, BytesDecoder] = {
    "string": _string,
    "json": _json,
    "hex": bytes.hex,
    "base64": lambda data: base64.b64encode(data).decode("ascii"),
    "integer": _number(">i", "an int32"),
    "long": _number(">q", "an int64"),
    "double": _number(">d", "a float64"),
}

_JAVA_PREFIX = "org.apache.kafka.tools.api."
JAVA_DECODERS = {
    f"{_JAVA_PREFIX}{name}": short
    for name, short in (
        ("StringDecoder", "string"),
        ("DefaultDecoder", "hex"),
        ("IntegerDecoder", "integer"),
        ("LongDecoder", "long"),
        ("DoubleDecoder", "double"),
    )
}


def find_decoder(name: str) -> BytesDecoder | None:
    """The decoder of a short name or a Kafka class name; None if there is none."""
    short = JAVA_DECODERS.get(name, name.lower())
    return DECODERS.get(short)


def record_decoder(key: BytesDecoder, value: BytesDecoder) -> RecordDecoder:
    """A record decoder from one for keys and one for values. Null keys and values are left out, as in Kafka's tool."""

    def decode(record: Record) -> dict[str, object]:
        fields: dict[str, object] = {}
        if record.key is not None:
            fields["key"] = key(record.key)
        if record.value is not None:
            fields["payload"] = value(record.value)
        return fields

    return decode


# the flag's name → the log it decodes
_LOGS = {
    "offsets": InternalLog.GROUPS,
    "transaction_log": InternalLog.TRANSACTIONS,
    "share_group_state": InternalLog.SHARE_STATE,
    "cluster_metadata": InternalLog.CLUSTER_METADATA,
    "remote_log_metadata": InternalLog.REMOTE_LOG_METADATA,
}

_TOPICS = {
    "__consumer_offsets": "offsets",
    "__transaction_state": "transaction_log",
    "__share_group_state": "share_group_state",
    "__cluster_metadata": "cluster_metadata",
    "__remote_log_metadata": "remote_log_metadata",
}

_TOMBSTONE = "<DELETE>"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def internal_decoder(flag: str) -> RecordDecoder:
    """The decoder of one of Kafka's `--…-decoder` flags."""
    log = _LOGS[flag]
    if log in (InternalLog.CLUSTER_METADATA, InternalLog.REMOTE_LOG_METADATA):
        return lambda record: _metadata_fields(log, record)
    return lambda record: _coordinator_fields(log, record)


def decoder_for_topic_of(path: str) -> RecordDecoder | None:
    """The decoder for the internal topic whose folder contains `path`; None for all other topics."""
    if posixpath.basename(path) == "bootstrap.checkpoint":
        return internal_decoder("cluster_metadata")
    try:
        topic = parse_folder_name(posixpath.basename(posixpath.dirname(path))).partition.topic
    except InvalidFolderName:
        return None
    return internal_decoder(_TOPICS[topic]) if topic in _TOPICS else None


def _metadata_fields(log: InternalLog, record: Record) -> dict[str, object]:
    if record.value is None:
        return {"payload": _TOMBSTONE}
    try:
        message, version = decode_metadata_record(record.value, log)
        data = to_json(message, version)
    except OttlaError as damage:
        return {"payload": f"unreadable: {damage}"}
    name = _WORD_START.sub("_", type(message).__name__).upper()
    return {"payload": {"type": name, "version": version, "data": data}}


def _coordinator_fields(log: InternalLog, record: Record) -> dict[str, object]:
    if record.key is None:
        return {"payload": "unreadable: a coordinator's record must have a key"}
    try:
        key = decode_coordinator_key(log, record.key)
        shown: dict[str, object] = {"key": {"type": str(key.KEY), "data": to_json(key, 0)}}
        if record.value is None:
            return shown | {"payload": _TOMBSTONE}
        message, version = decode_coordinator_value(log, key, record.value)
        data = to_json(message, version)
        if isinstance(message, GroupMetadataValue) and message.protocol_type == "consumer":
            _open_member_protocol(message, data)
        return shown | {"payload": {"version": str(version), "data": data}}
    except OttlaError as damage:
        return {"payload": f"unreadable: {damage}"}


def _open_member_protocol(group: GroupMetadataValue, data: dict[str, Any]) -> None:
    """Decode subscriptions and assignments in place: consumers put their own schemas into these bytes."""
    for member, shown in zip(group.members, data["members"], strict=True):
        shown["subscription"] = _protocol_json(read_subscription, member.subscription, shown["subscription"])
        shown["assignment"] = _protocol_json(read_assignment, member.assignment, shown["assignment"])


def _protocol_json(
    read: Callable[[bytes], ConsumerProtocolSubscription | ConsumerProtocolAssignment], content: bytes, otherwise: object
) -> object:
    """`content` as JSON, in the version that it has; `otherwise` if `read` cannot read it."""
    try:
        return to_json(read(content), version_of(content))
    except OttlaError:
        return otherwise


def dump_batches(file: File, options: DumpOptions) -> Rows:
    """Every batch of `file`, with its records if the options ask for them."""
    gaps: list[tuple[int, int]] = []
    last_offset = -1
    for found in _batches(file, options.max_bytes):
        if isinstance(found, Row):
            yield found
            continue
        position, view, is_valid = found
        yield Row(Kind.BATCH, _batch_fields(position, view, is_valid))
        if not (options.deep_iteration or options.decoder):
            continue
        try:
            records = read_records(view)
        except CorruptRecords as damage:
            yield problem(f"the records of the batch at byte {position} cannot be read: {damage}")
            continue
        for record in records:
            if last_offset >= 0 and record.offset != last_offset + 1:
                gaps.append((last_offset, record.offset))
            last_offset = record.offset
            yield from _record_row(view, record, options)
    if gaps:
        yield from _gap_rows(file.path, gaps)


def _gap_rows(path: str, gaps: list[tuple[int, int]]) -> Rows:
    """Gaps between offsets. They are notes, not problems: compaction leaves gaps."""
    yield Row(Kind.NOTE, {"text": f"Non-consecutive offsets in {path}"})
    for before, after in gaps:
        yield Row(Kind.NOTE, {"text": f"  {before} is followed by {after}"})


def _batches(file: File, max_bytes: int) -> Iterator[tuple[int, BatchView, bool] | Row]:
    end = min(file.size, max_bytes)
    position = 0
    try:
        for position, header in headers(file, 0, file.size):
            if position + header.size > end:
                return
            view = whole_batch(file, position, header.size)
            yield position, view, view.computed_crc() == view.crc
    except CorruptFile as damage:
        name = posixpath.basename(file.path)
        yield problem(f"Found {file.size - damage.position} invalid bytes at the end of {name}: {damage.what}")


def _batch_fields(position: int, view: BatchView, is_valid: bool) -> dict[str, object]:
    try:
        codec = view.codec.name.lower()
    except CorruptRecords:
        codec = "unknown"
    return {
        "baseOffset": view.base_offset,
        "lastOffset": view.last_offset,
        "count": view.count,
        "baseSequence": view.base_sequence,
        "lastSequence": view.last_sequence,
        "producerId": view.producer_id,
        "producerEpoch": view.producer_epoch,
        "partitionLeaderEpoch": view.leader_epoch,
        "isTransactional": view.is_transactional,
        "isControl": view.is_control,
        "deleteHorizonMs": view.delete_horizon_ms,
        "position": position,
        _timestamp_name(view): view.max_timestamp,
        "size": view.size,
        "magic": view.magic,
        "compresscodec": codec,
        "crc": view.crc,
        "isvalid": is_valid,
    }


def _timestamp_name(view: BatchView) -> str:
    return "LogAppendTime" if view.is_append_time else "CreateTime"


def _record_row(view: BatchView, record: Record, options: DumpOptions) -> Rows:
    fields: dict[str, object] = {}
    if not options.skip_record_metadata:
        no_sequence = view.base_sequence == NO_SEQUENCE
        fields = {
            "offset": record.offset,
            _timestamp_name(view): record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "sequence": NO_SEQUENCE if no_sequence else sequence_after(view.base_sequence, record.offset - view.base_offset),
            "headerKeys": [name for name, _ in record.headers],
        }
    if view.is_control:
        if options.skip_record_metadata:
            return
        fields |= control_fields(record)
    elif options.decoder:
        fields |= options.decoder(record)
    yield Row(Kind.RECORD, fields)
