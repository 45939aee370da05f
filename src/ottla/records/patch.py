"""Changes to a batch in place, where the broker owns the buffer: no record is touched.

Base offset and leader epoch lie outside the CRC, so they are overwritten and nothing else. Append time lies inside it: the
attribute bit and maxTimestamp are set and the CRC is computed anew.
"""

from struct import Struct

import crc32c

from ottla.records.batch import APPEND_TIME, CRC_START, LOG_OVERHEAD, BatchView

WritableBuffer = bytearray | memoryview

_OFFSET = Struct(">q")
_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")

_EPOCH_AT = 12
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35


def set_base_offset_and_epoch(buffer: WritableBuffer, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `position` its place in the log. Views made before keep the old numbers."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _EPOCH.pack_into(buffer, position + _EPOCH_AT, leader_epoch)


def set_append_time(buffer: WritableBuffer, position: int, timestamp_ms: int) -> None:
    """Mark the batch at `position` as stamped by the broker at `timestamp_ms`, and compute its CRC anew."""
    view = BatchView(buffer, position)
    view.check_size()
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_AT, view.attributes | APPEND_TIME)
    _TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    set_crc(buffer, position, LOG_OVERHEAD + view.batch_length)


def set_max_timestamp(buffer: WritableBuffer, position: int, timestamp_ms: int) -> None:
    """Correct the largest record timestamp of the batch at `position` (create time), and compute its CRC anew."""
    view = BatchView(buffer, position)
    view.check_size()
    _ATTRIBUTES.pack_into(buffer, position + _ATTRIBUTES_AT, view.attributes & ~APPEND_TIME)
    _TIMESTAMP.pack_into(buffer, position + _MAX_TIMESTAMP_AT, timestamp_ms)
    set_crc(buffer, position, LOG_OVERHEAD + view.batch_length)


def set_crc(buffer: WritableBuffer, position: int, size: int) -> None:
    """Write the CRC that the `size` bytes of the batch at `position` really have."""
    crc = crc32c.crc32c(memoryview(buffer)[position + CRC_START : position + size])
    _CRC.pack_into(buffer, position + _CRC_AT, crc)
