# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The produced batch that nothing can be said against: found out in one go, in one source for two twins.

By far the most batches are whole, not too large, with the right CRC and timestamps that are in bounds. Those pass here.
Whatever does not may still be fine: `validate.py` looks at it closely, says what is wrong, or changes it as the topic wants it.
Nothing may pass here that it would refuse or change; a test holds the two to each other.

The rules are those of `kernel.py`; `batch.py` has the format of the header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.errors import CorruptRecords
from ottla.records import kernel_fields as fields
from ottla.records import kernel_views as views
from ottla.records.checksum import crc32c

if TYPE_CHECKING:
    from ottla.config.topic import LogConfig
    from ottla.records.kernel_columns import RecordWalk
    from ottla.records.kernel_fields import Buffer

_HEADER_SIZE = 61
_LOG_OVERHEAD = 12
_CRC_START = 21
_MAGIC = 2
_CODEC_MASK = 0x07
_LZ4 = 3
_ZSTD = 4
_LZ4_FLAGS_AT = 65
"""Of a batch whose records are an LZ4 frame: where the frame has its flags."""
_LZ4_INDEPENDENT = 0x20
"""Whether its blocks can be read one by one, as Kafka's readers in Java do."""
_TRANSACTIONAL = 0x10
_ZSTD_REQUEST_VERSION_MIN = 7
_TIMESTAMP_UNBOUNDED = 0x7FFFFFFFFFFFFFFF


class UsualBatch:
    """What the log has to know of such a batch."""

    __slots__ = ("attributes", "base_sequence", "count", "max_timestamp", "producer_epoch", "producer_id", "size_bytes")

    attributes: int
    """The codec, and whether it belongs to a transaction: nothing else."""
    base_sequence: int
    count: int
    max_timestamp: int
    producer_epoch: int
    producer_id: int
    size_bytes: int


class BatchLimits:
    """What a topic's settings ask of a batch, as numbers. `walk` is what the records are walked with: nobody else's."""

    __slots__ = (
        "_after_max_ms",
        "_are_batches_kept",
        "_are_codecs_kept",
        "_are_records_read",
        "_before_max_ms",
        "_needs_keys",
        "_size_bytes_max",
        "_walk",
    )

    def __init__(self, config: LogConfig, walk: RecordWalk) -> None:
        self._are_codecs_kept = config.compression_type == "producer"
        self._are_batches_kept = config.compression_type in ("producer", "uncompressed") and not config.is_append_time
        self._size_bytes_max = config.max_message_bytes
        self._after_max_ms = config.message_timestamp_after_max_ms
        self._before_max_ms = config.message_timestamp_before_max_ms
        self._needs_keys = config.compact
        # Of compressed batches too: see `validate.py` for when they are not taken as they are.
        self._are_records_read = config.compact or config.message_timestamp_before_max_ms != _TIMESTAMP_UNBOUNDED
        self._walk = walk

    def check(
        self, data: Buffer, start: int, end: int, covered: memoryview, now_ms: int, from_client: bool, request_version: int
    ) -> UsualBatch | None:
        """The batch that `data` is from `start` to `end`; None to have it looked at closely. `covered`: what the CRC covers."""
        size = end - start
        if start < 0 or end > len(data) or size < _HEADER_SIZE or size > self._size_bytes_max or not self._are_batches_kept:
            return None
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
            or _checksum(covered) != crc
        ):
            return None
        codec = attributes & _CODEC_MASK
        if codec:
            if not self._are_codecs_kept or self._are_records_read or codec > _ZSTD:
                return None
            if codec == _ZSTD and request_version < _ZSTD_REQUEST_VERSION_MIN:
                return None
            if codec == _LZ4 and (size <= _LZ4_FLAGS_AT or not data[start + _LZ4_FLAGS_AT] & _LZ4_INDEPENDENT):
                return None
        elif not self._are_records_usual(data, start + _HEADER_SIZE, end, count, base_timestamp, max_timestamp, now_ms):
            return None
        batch = UsualBatch()
        batch.attributes = attributes
        batch.base_sequence = base_sequence
        batch.count = count
        batch.max_timestamp = max_timestamp
        batch.producer_epoch = producer_epoch
        batch.producer_id = producer_id
        batch.size_bytes = size
        return batch

    def takes_own(self, size: int) -> bool:
        """Whether an uncompressed batch of `size` bytes, made now by the broker itself, is taken as it is."""
        return self._are_batches_kept and size <= self._size_bytes_max

    def _are_records_usual(
        self, data: Buffer, start: int, end: int, count: int, base_timestamp: int, max_timestamp: int, now_ms: int
    ) -> bool:
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
