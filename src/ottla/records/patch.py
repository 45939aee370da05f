"""Changes to a batch in place, where the broker owns the buffer: no record is touched.

Base offset and leader epoch lie outside the CRC, so they are overwritten and nothing else. Everything else lies inside it: the
fields are set and the CRC is computed again. Views made before keep the old numbers.
"""

from struct import Struct

from ottla.records.batch import BatchView
from ottla.records.checksum import crc32c
from ottla.records.layout import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    CRC_AT,
    CRC_START,
    DELETE_HORIZON,
    LEADER_EPOCH_AT,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAX_TIMESTAMP_AT,
    TRANSACTIONAL,
)

WritableBuffer = bytearray | memoryview

_INT64 = Struct(">q")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT16 = Struct(">h")

_KNOWN_ATTRIBUTES = CODEC_MASK | APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON
"""As Kafka does, setting attributes drops the bits that have no meaning."""


def set_base_offset_and_epoch(buffer: WritableBuffer, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `position` its place in the log."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LEADER_EPOCH_AT, leader_epoch)


def set_append_time(buffer: WritableBuffer, position: int, timestamp_ms: int) -> None:
    """Mark the batch at `position` as stamped by the broker at `timestamp_ms`."""
    view = BatchView(buffer, position)
    view.check_size()
    _set_time(buffer, view, view.attributes | APPEND_TIME, timestamp_ms)


def set_max_timestamp(buffer: WritableBuffer, position: int, timestamp_ms: int) -> None:
    """Correct the largest timestamp of the batch at `position`, whose records have their producer's timestamps."""
    view = BatchView(buffer, position)
    view.check_size()
    _set_time(buffer, view, view.attributes & ~APPEND_TIME, timestamp_ms)


def _set_time(buffer: WritableBuffer, view: BatchView, attributes: int, timestamp_ms: int) -> None:
    position = view.position
    _INT16.pack_into(buffer, position + ATTRIBUTES_AT, attributes & _KNOWN_ATTRIBUTES)
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_AT, timestamp_ms)
    set_crc(buffer, position, view.size)


def set_shape(buffer: WritableBuffer, position: int, size: int, attributes: int) -> None:
    """Set the length and attributes of the batch at `position`, whose records were compressed again, and its CRC."""
    _INT32.pack_into(buffer, position + LENGTH_AT, size - LOG_OVERHEAD)
    _INT16.pack_into(buffer, position + ATTRIBUTES_AT, attributes)
    set_crc(buffer, position, size)


def set_crc(buffer: WritableBuffer, position: int, size: int) -> None:
    """Write the CRC that the `size` bytes of the batch at `position` really have."""
    with memoryview(buffer) as whole, whole[position + CRC_START : position + size] as covered:
        crc = crc32c(covered)
    _UINT32.pack_into(buffer, position + CRC_AT, crc)
