"""Encodes and decodes the control records of the metadata log and its snapshots. Pure.

A control record's value begins with its version. All these schemas list that version as their first field.
"""

from __future__ import annotations

from typing import TypeVar

from ottla.errors import DecodeError
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.records.control import ControlRecord, ControlType
from ottla.wire.base import Message
from ottla.wire.codec import join_parts
from ottla.wire.messages.control_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from ottla.wire.sparing import decode_all, encode

M = TypeVar("M", bound=Message)

LEADER_CHANGE_VERSION = 0
"""Kafka 4.3 writes version 0, also in dynamic quorums: voters by id alone."""


def leader_change(leader_id: int, voters: VoterSet, granting: tuple[ReplicaKey, ...]) -> ControlRecord:
    """The LeaderChange record, the first of a leader's epoch."""
    message = LeaderChangeMessage(
        leader_id=leader_id,
        voters=[LeaderChangeMessageVoter(voter_id=voter_id) for voter_id in voters.ids],
        granting_voters=[LeaderChangeMessageVoter(voter_id=key.id) for key in granting],
    )
    return _control(ControlType.LEADER_CHANGE, message, LEADER_CHANGE_VERSION)


def kraft_version(level: int) -> ControlRecord:
    return _control(ControlType.KRAFT_VERSION, KRaftVersionRecord(kraft_version=level))


def kraft_voters(voters: VoterSet) -> ControlRecord:
    return _control(ControlType.KRAFT_VOTERS, voters.to_record())


def snapshot_header(last_contained_log_timestamp_ms: int) -> ControlRecord:
    message = SnapshotHeaderRecord(last_contained_log_timestamp=last_contained_log_timestamp_ms)
    return _control(ControlType.SNAPSHOT_HEADER, message)


def snapshot_footer() -> ControlRecord:
    return _control(ControlType.SNAPSHOT_FOOTER, SnapshotFooterRecord())


def read_kraft_version(control: ControlRecord) -> int:
    return _message(control, KRaftVersionRecord).kraft_version


def read_kraft_voters(control: ControlRecord) -> VoterSet:
    return VoterSet.from_record(_message(control, VotersRecord))


def read_snapshot_header(control: ControlRecord) -> int:
    """The time of the newest record that a snapshot holds."""
    return _message(control, SnapshotHeaderRecord).last_contained_log_timestamp


def _control(control_type: ControlType, message: Message, version: int = 0) -> ControlRecord:
    # The encoded message begins with its version (2 bytes), which `ControlRecord` holds as a field of its own.
    return ControlRecord(control_type, version, join_parts(encode(message, version))[2:])


def _message(control: ControlRecord, cls: type[M]) -> M:
    if control.version < 0:
        raise DecodeError(f"a control record of type {control.type} has version {control.version}; versions start at 0")
    return decode_all(cls, control.version, control.value)
