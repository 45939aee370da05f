"""Control records: what the brokers themselves write among the records, in batches with the control bit.

key: version int16, type int16. value: version int16, then the body of the type's schema. Bodies other than that of the end of
a transaction belong to the wire schemas: here they are raw bytes, with the value's version apart.

An end marker is a batch of one record, transactional, from the producer whose transaction ends; its body is the coordinator's
epoch int32. Readers skip types they do not know, and keys of newer versions keep these two fields in front.
"""

from enum import IntEnum
from struct import Struct, error
from typing import NamedTuple

from ottla.errors import CorruptRecords
from ottla.records.builder import build_batch
from ottla.records.kernels import Record

_KEY = Struct(">hh")
_VERSION = Struct(">h")
_END_BODY = Struct(">i")


class ControlType(IntEnum):
    """The type in a control record's key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class ControlRecord(NamedTuple):
    """One control record, taken apart. `type` is a `ControlType`, or the plain number of one that is not known here."""

    type: int
    version: int
    """Of the value's schema."""
    body: bytes
    """The value without its version."""

    @property
    def value(self) -> bytes:
        """The whole value. All schemas but that of the end of a transaction count the version as their first field."""
        return control_value(self.version, self.body)


class EndMarker(NamedTuple):
    """The end of one producer's transaction in one partition."""

    is_commit: bool
    coordinator_epoch: int


def control_key(control_type: int) -> bytes:
    return _KEY.pack(0, control_type)


def control_value(version: int, body: bytes) -> bytes:
    return _VERSION.pack(version) + body


def parse_control_type(key: bytes | None) -> int:
    """The type that a control record's key names; `ControlType` has the ones that are known."""
    try:
        version, number = _KEY.unpack_from(key or b"")
    except error:
        raise CorruptRecords(f"a control record's key must have a version and a type, 4 bytes; this one is {key!r}") from None
    if version < 0:
        raise CorruptRecords(f"a control record's key has version {version}; versions start at 0")
    return int(number)


def parse_control(record: Record) -> ControlRecord:
    """`record`, of a control batch, taken apart."""
    number = parse_control_type(record.key)
    value = record.value
    if value is None or len(value) < _VERSION.size:
        raise CorruptRecords(f"the control record at offset {record.offset} (type {number}) has no value to hold its version")
    return ControlRecord(number, _VERSION.unpack_from(value)[0], value[_VERSION.size :])


def parse_end_marker(record: Record) -> EndMarker:
    """`record` as the end of a transaction; `CorruptRecords` if it is not one."""
    control = parse_control(record)
    if control.type not in (ControlType.ABORT, ControlType.COMMIT):
        raise CorruptRecords(f"the control record at offset {record.offset} has type {control.type}: it ends no transaction")
    if control.version < 0 or len(control.body) < _END_BODY.size:
        raise CorruptRecords(f"the end marker at offset {record.offset} has no coordinator epoch")
    return EndMarker(control.type == ControlType.COMMIT, _END_BODY.unpack_from(control.body)[0])


def build_end_marker(
    *,
    is_commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The batch that ends a producer's transaction."""
    key = control_key(ControlType.COMMIT if is_commit else ControlType.ABORT)
    record = Record(base_offset, timestamp_ms, key, control_value(0, _END_BODY.pack(coordinator_epoch)))
    return build_batch(
        [record],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


def build_control_batch(controls: list[ControlRecord], *, base_offset: int, timestamp_ms: int, leader_epoch: int) -> bytearray:
    """A batch of control records that belong to no transaction, as the metadata log and its snapshots have them."""
    records = [
        Record(base_offset + index, timestamp_ms, control_key(control.type), control_value(control.version, control.body))
        for index, control in enumerate(controls)
    ]
    return build_batch(records, leader_epoch=leader_epoch, control=True)
