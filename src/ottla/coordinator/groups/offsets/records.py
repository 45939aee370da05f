"""Offsets as records of __consumer_offsets, and back.

key     type 1: group, topic, partition; type 0, of releases before 0.9: the same
value   version 4; version 1 where the client says itself when the offset expires, since only that one can tell
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
    """The offset that a value at `log_offset` tells."""
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
