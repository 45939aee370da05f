"""Decoders for records of Kafka's internal topics: key and payload as JSON, as Kafka's tool shows them.

A record that cannot be decoded is shown as unreadable, and the dump continues: a newer release may have written it.
"""

import posixpath
import re
from collections.abc import Callable
from typing import Any

from ottla.cli.dump_log.options import RecordDecoder
from ottla.errors import OttlaError
from ottla.log.names import InvalidFolderName, parse_folder_name
from ottla.records.record import Record
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
