# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The fast check of a produced batch: header, CRC and records in one go, in one source for two variants.

Most batches are whole, not too large, with the right CRC and timestamps in bounds. They pass here and are appended as they are.
The others may still be right: `validate.py` checks them in full, says what is wrong, or changes them as the topic demands. It
goes on from where this stopped (`CheckedBatch.decline`), so that no batch is checksummed twice. Nothing may pass here that
`validate.py` would refuse or change; a test compares the two.

The rules for both variants are those of `kernel.py`; `layout.py` has the format of the header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import CorruptRecords
from ottla.records import kernel_fields as fields
from ottla.records import kernel_frames as frames
from ottla.records import kernel_views as views
from ottla.records import layout
from ottla.records.checksum import crc32c
from ottla.records.decline import Decline

if TYPE_CHECKING:
    from ottla.config.topic import LogConfig
    from ottla.records.kernel_columns import RecordWalk
    from ottla.records.kernel_fields import Buffer
    from ottla.records.produced.inspection import Inspection

_HEADER_SIZE = layout.HEADER_SIZE
_LOG_OVERHEAD = layout.LOG_OVERHEAD
_MAGIC = layout.MAGIC
_CODEC_MASK = layout.CODEC_MASK
_RECORD_SIZE_MIN = layout.RECORD_SIZE_MIN
_COUNT_MAX = layout.COMPRESSED_COUNT_MAX
_TRANSACTIONAL = layout.TRANSACTIONAL
_LZ4 = 3
_ZSTD = 4
_LZ4_FLAGS_AT = _HEADER_SIZE + 4
"""Where a batch whose records are an LZ4 frame has the frame's flags."""
_LZ4_INDEPENDENT = 0x20
"""The flag for blocks that can be read one by one, as Kafka's readers in Java do."""
_ZSTD_REQUEST_VERSION_MIN = 7
_TIMESTAMP_UNBOUNDED = 0x7FFFFFFFFFFFFFFF
_DECLINE_NO = int(Decline.NO)
_DECLINE_HEADER = int(Decline.HEADER)
_DECLINE_CRC = int(Decline.CRC)
_DECLINE_RECORDS = int(Decline.RECORDS)


class CheckedBatch:
    """What the fast check found out about a batch. Without a `decline`, the header's numbers are here too."""

    __slots__ = (
        "attributes",
        "base_sequence",
        "count",
        "decline",
        "limits",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "size_bytes",
    )

    attributes: int
    """The codec, and whether the batch belongs to a transaction: no other bit is set."""
    base_sequence: int
    count: int
    decline: int
    """A `Decline`, up to RECORDS: what the check stopped at."""
    limits: BatchLimits
    """What it was compared with. A topic with new settings has new ones, and the check is not worth anything there."""
    max_timestamp: int
    producer_epoch: int
    producer_id: int
    size_bytes: int


class BatchLimits:
    """What a topic's settings demand of a batch, as numbers.

    `walk` walks the records, and is used for nothing else. `inspection` looks into those that are compressed.
    """

    __slots__ = (
        "_after_max_ms",
        "_are_batches_kept",
        "_are_codecs_kept",
        "_are_records_read",
        "_before_max_ms",
        "_inspection",
        "_needs_keys",
        "_size_bytes_max",
        "_walk",
    )

    def __init__(self, config: LogConfig, walk: RecordWalk, inspection: Inspection) -> None:
        self._are_codecs_kept = config.compression_type == "producer"
        self._are_batches_kept = config.compression_type in ("producer", "uncompressed") and not config.is_append_time
        self._size_bytes_max = config.max_message_bytes
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._needs_keys = config.compact
        # Those of compressed batches too, which takes decompressing: `validate.py` does that.
        self._are_records_read = config.compact or config.message_timestamp_before_max_ms != _TIMESTAMP_UNBOUNDED
        self._walk = walk
        self._inspection = inspection

    def check(
        self, data: Buffer, start: int, end: int, covered: memoryview, now_ms: int, from_client: bool, request_version: int
    ) -> CheckedBatch:
        """Check the batch that `data` is from `start` to `end`; `covered` are those of its bytes that the CRC covers.

        What the header alone decides comes before the CRC, which is the most expensive.
        """
        size = end - start
        batch = CheckedBatch()
        batch.limits = self
        batch.decline = _DECLINE_HEADER
        if start < 0 or end > len(data) or size < _HEADER_SIZE or size > self._size_bytes_max or not self._are_batches_kept:
            return batch
        (
            base_offset,
            batch_length,
            _,
            magic,
            crc,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = fields.batch_header(views.raw_of(data), start)
        if (
            batch_length != size - _LOG_OVERHEAD
            or magic != _MAGIC
            or attributes & ~(_TRANSACTIONAL | _CODEC_MASK)
            or count <= 0
            or count != last_offset_delta + 1
            or (base_offset != 0 and from_client)
            or (base_sequence < 0 and producer_id >= 0)
            or max_timestamp < 0
            or max_timestamp - now_ms > self._after_max_ms
        ):
            return batch
        codec = attributes & _CODEC_MASK
        if codec:
            if not self._are_codecs_kept or self._are_records_read or codec > _ZSTD:
                return batch
            if codec == _ZSTD and request_version < _ZSTD_REQUEST_VERSION_MIN:
                return batch
            if codec == _LZ4 and (size <= _LZ4_FLAGS_AT or not data[start + _LZ4_FLAGS_AT] & _LZ4_INDEPENDENT):
                return batch
        if _checksum(covered) != crc:
            batch.decline = _DECLINE_CRC
            return batch
        if codec:
            is_fast = not from_client or self._is_readable(
                data, start, end, codec, count, base_timestamp, max_timestamp, now_ms
            )
        else:
            is_fast = self._are_records_fast(data, start + _HEADER_SIZE, end, count, base_timestamp, max_timestamp, now_ms)
        if not is_fast:
            batch.decline = _DECLINE_RECORDS
            return batch
        batch.decline = _DECLINE_NO
        batch.attributes = attributes
        batch.base_sequence = base_sequence
        batch.count = count
        batch.max_timestamp = max_timestamp
        batch.producer_epoch = producer_epoch
        batch.producer_id = producer_id
        batch.size_bytes = size
        return batch

    def _is_readable(
        self, data: Buffer, start: int, end: int, codec: int, count: int, base_timestamp: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether compressed records have a right frame, and nothing is wrong with them as far as they are inspected."""
        size_max = frames.plain_bytes_max(codec, data, start + _HEADER_SIZE, end)
        if count > _COUNT_MAX or count * _RECORD_SIZE_MIN > size_max:
            return False
        inspection = self._inspection
        if inspection.spent_ms == now_ms:
            return True
        payload = memoryview(data)[start + _HEADER_SIZE : end]
        passes: bool = inspection.passes(codec, payload, count, base_timestamp, max_timestamp, now_ms)
        return passes

    def takes_own(self, size: int) -> bool:
        """Whether an uncompressed batch of `size` bytes, made now by the broker itself, is appended as it is."""
        return self._are_batches_kept and size <= self._size_bytes_max

    def _are_records_fast(
        self, data: Buffer, start: int, end: int, count: int, base_timestamp: int, max_timestamp: int, now_ms: int
    ) -> bool:
        """Whether the records are whole, numbered from 0, within the timestamp bounds, and have keys where they must."""
        walk = self._walk
        try:
            walk.walk(data, start, end, count, base_timestamp)
        except CorruptRecords:
            return False
        return (
            walk.max_timestamp == max_timestamp
            and walk.min_timestamp >= 0
            and now_ms - walk.min_timestamp <= self._before_max_ms
            and walk.displaced == 0
            and (walk.keyless == 0 or not self._needs_keys)
        )


def _checksum(covered: memoryview) -> int:
    return crc32c(covered)
