"""Converts offsets from and to records of __consumer_offsets.

key     type 1: group, topic, partition; type 0, of releases before 0.9: the same
value   version 4; version 1 where the client sets the expiry, since only that version has the field
"""

from __future__ import annotations

from ottla.coordinator.contract import CoordinatorRecord, tombstone
from ottla.coordinator.groups.offsets.store import Place, StoredOffset
from ottla.wire.log_records import LogRecord
from ottla.wire.messages.offset_records import LegacyOffsetCommitValue, OffsetCommitKey, OffsetCommitValue

VALUE_VERSION = 4
EXPIRING_VALUE_VERSION = 1


def tombstone_of(place: Place) -> CoordinatorRecord:
    group_id, topic, partition = place
    return tombstone(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def offset_of(value: LogRecord, log_offset: int) -> StoredOffset:
    """The offset in the value of a record at `log_offset`."""
    message = value.message
    if isinstance(message, LegacyOffsetCommitValue):
        message = OffsetCommitValue(offset=message.offset, metadata=message.metadata, commit_timestamp=message.commit_timestamp)
    return (
        log_offset,
        message.offset,
        message.leader_epoch,
        message.metadata,
        message.commit_timestamp,
        message.expire_timestamp,
        message.topic_id,
    )
