# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The end of a log, where everything is appended: its numbers and its fast path, in one source for two variants.

Base classes hold those numbers, in the compiled variant as C numbers: `LogTail` of `PartitionLog`, `SegmentTail` of `Segment`,
`IndexTail` of `SparseIndex`, `EpochsTail` of `LeaderEpochs`; those of the producers are in `kernel_producers.py`. Everything
else of these classes, all that is rare or waits, is plain Python, in the files that bear their names.

The fast path of an append has two steps. `LogTail.check_fast` checks batch and log, and changes nothing. `LogTail.write` writes
the batch, and moves the numbers only after the bytes are in the file. What `check_fast` declines, it declines with a reason
(`Decline`) and with what it found out about the batch: the general path in `append.py` goes on from there, to the same effect.
The marker that commits a transaction is appended in one step: `append_marker` does it, or says that it did not. So are batches
of a leader: `append_followed`.

The rules for both variants are those of `records/kernel.py`. One event loop, plain calls.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from ottla.errors import BrokenInvariant
from ottla.records import layout
from ottla.records.checksum import crc32c
from ottla.records.decline import Decline

if TYPE_CHECKING:
    from ottla.env import Buffer
    from ottla.log.fast_path.kernel_producers import ProducersTail, ProducerTail
    from ottla.log.producers.append_checks import VerificationState
    from ottla.records.kernel_batch import BatchLimits, CheckedBatch

_PLACE = layout.PLACE
_HEADER = layout.HEADER
_HEADER_SIZE = layout.HEADER_SIZE
_BATCH_LENGTH_MIN = layout.BATCH_LENGTH_MIN
_MAGIC = layout.MAGIC
_TRANSACTIONAL_OR_CONTROL = layout.TRANSACTIONAL | layout.CONTROL
_LOG_OVERHEAD = layout.LOG_OVERHEAD
_CRC_START = layout.CRC_START
_DECLINE_NO = int(Decline.NO)
_DECLINE_LOG = int(Decline.LOG)
_RELATIVE_OFFSET_MAX = 0x7FFFFFFF
_BLOCK_ENTRIES = 512
BLOCK_ENTRIES = _BLOCK_ENTRIES
"""Index entries that wait in memory before they are written together."""

_INT64_MAX = 0x7FFFFFFFFFFFFFFF
_UNKNOWN = -_INT64_MAX - 1
UNKNOWN_TIMESTAMP = _UNKNOWN
"""In place of a timestamp that has not been looked up yet."""


class IndexTail:
    """The last entries of an index, in memory until a block of them is written."""

    __slots__ = ("_keys", "_values", "_written", "base_offset", "count", "entries_max", "last_key", "last_value")

    _keys: array[int]
    _values: array[int]
    _written: int
    base_offset: int
    count: int
    entries_max: int
    last_key: int
    last_value: int

    def add(self, key: int, value: int) -> None:
        """Append an entry; neither number may be less than the last entry's. The index must be open."""
        _add_entry(self, key, value)

    def write_block(self) -> None:
        """There are enough entries to write."""
        raise NotImplementedError


def _add_entry(index: IndexTail, key: int, value: int) -> None:
    index._keys.append(key)
    index._values.append(value)
    index.count += 1
    index.last_key = key
    index.last_value = value
    if index.count - index._written >= _BLOCK_ENTRIES:
        index.write_block()


class SegmentTail:
    """The end of a segment's file, and what decides whether more goes there."""

    __slots__ = (
        "_first_timestamp",
        "_last_base_offset",
        "_last_offset",
        "_last_position",
        "_last_size",
        "_max_timestamp",
        "_max_timestamp_offset",
        "base_offset",
        "bytes_since_index_entry",
        "created_ms",
        "file",
        "index_interval_bytes",
        "is_dormant",
        "offset_index",
        "roll_jitter_ms",
        "time_index",
    )

    _first_timestamp: int
    """The largest timestamp of the first batch; `UNKNOWN_TIMESTAMP` until it is read from the file."""
    _last_base_offset: int
    _last_offset: int
    _last_position: int
    _last_size: int
    """Of the batch that was appended last: 0 if none was since the segment was opened or truncated."""
    _max_timestamp: int
    _max_timestamp_offset: int
    base_offset: int
    bytes_since_index_entry: int
    created_ms: int
    file: Any
    index_interval_bytes: int
    is_dormant: bool
    """Whether the segment must be activated before anything is appended: its files are not open yet."""
    offset_index: IndexTail
    roll_jitter_ms: int
    time_index: IndexTail

    @property
    def first_timestamp(self) -> int:
        raise NotImplementedError

    def must_roll(
        self, segment_bytes: int, age_max_ms: int, size_bytes: int, max_timestamp: int, last_offset: int, now_ms: int
    ) -> bool:
        """Whether a new segment must be begun before `size_bytes` more that end with `last_offset` are appended."""
        size = self.file.size
        relative_offset = last_offset - self.base_offset
        if size > segment_bytes - size_bytes or relative_offset < 0 or relative_offset > _RELATIVE_OFFSET_MAX:
            return True
        if size:
            first = self._first_timestamp
            if first == _UNKNOWN:
                first = self.first_timestamp
            waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
            if waited_ms > age_max_ms - self.roll_jitter_ms:
                return True
        offset_index, time_index = self.offset_index, self.time_index
        return offset_index.count >= offset_index.entries_max or time_index.count >= time_index.entries_max

    def append_one(self, data: Buffer, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """Append one batch whose offsets are set."""
        position = self.file.append(data)
        self.count_in(position, size, base_offset, last_offset, max_timestamp)

    def count_in(self, position: int, size: int, base_offset: int, last_offset: int, max_timestamp: int) -> None:
        """A batch has been written at `position`. The segment is active: its indexes are open, its largest timestamp known."""
        self._last_base_offset, self._last_offset = base_offset, last_offset
        self._last_position, self._last_size = position, size
        if position == 0:
            self._first_timestamp = max_timestamp
        self.index(position, size, last_offset, max_timestamp)

    def index(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Count the batch at `position` into the indexes."""
        assert self._max_timestamp != _UNKNOWN
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if self.bytes_since_index_entry > self.index_interval_bytes:
            time_index = self.time_index
            _add_entry(self.offset_index, last_offset - self.base_offset, position)
            if self._max_timestamp > time_index.last_key:
                _add_entry(time_index, self._max_timestamp, self._max_timestamp_offset - self.base_offset)
            self.bytes_since_index_entry = size
        else:
            self.bytes_since_index_entry += size


class EpochsTail:
    """The leader epochs of a partition and where each begins, oldest first."""

    __slots__ = ("_epochs", "_starts")

    _epochs: list[int]
    _starts: list[int]

    def is_latest(self, epoch: int) -> bool:
        """Whether `epoch` is the newest that the log knows."""
        count = len(self._epochs)
        return count > 0 and self._epochs[count - 1] == epoch


class FastAppend:
    """A batch that the fast path has checked. Without a `decline` it may be written, as long as nothing else is appended."""

    __slots__ = ("batch", "decline", "entry", "is_transaction_start", "leader_epoch", "now_ms", "records")

    batch: CheckedBatch | None
    """None: it has not been looked at."""
    decline: int
    """A `Decline`."""
    entry: ProducerTail | None
    is_transaction_start: bool
    leader_epoch: int
    now_ms: int
    records: Buffer | None


class LogTail:
    """The end of a partition's log."""

    __slots__ = (
        "epochs",
        "flush_messages",
        "flush_wanted_up_to",
        "high_watermark",
        "limits",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segment_age_max_ms",
        "segment_bytes",
        "segments",
        "write_barrier",
    )

    epochs: EpochsTail
    flush_messages: int
    flush_wanted_up_to: int | None
    high_watermark: int
    limits: BatchLimits
    log_end_offset: int
    log_start_offset: int
    producers: ProducersTail
    recovery_point: int
    segment_age_max_ms: int
    segment_bytes: int
    segments: Any
    write_barrier: Any

    def check_fast(
        self,
        data: Buffer,
        start: int,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        from_client: bool,
        request_version: int,
        verified_by: VerificationState | None = None,
        checked: CheckedBatch | None = None,
    ) -> FastAppend:
        """Check the batch `records`, which lies in `data` from `start` on, and whether the log can take it at once.

        `verified_by` is the proof that a transaction's first batch needs. `checked` is what an earlier check of the same batch
        found out: it is not repeated.
        """
        size = len(records)
        if checked is None or checked.limits is not self.limits:
            checked = self.limits.check(data, start, start + size, records[_CRC_START:], now_ms, from_client, request_version)
        batch = checked
        if batch.decline != _DECLINE_NO:
            return self.declined(batch.decline, batch)
        if self.write_barrier is not None or not self.epochs.is_latest(leader_epoch):
            return self.declined(_DECLINE_LOG, batch)
        end_offset = self.log_end_offset + batch.count
        if end_offset - self.recovery_point >= self.flush_messages:
            return self.declined(_DECLINE_LOG, batch)
        segment = self.segments.active
        if segment.is_dormant or (segment._first_timestamp == _UNKNOWN and segment.file.size):
            return self.declined(_DECLINE_LOG, batch)  # files would have to be opened or read
        if segment.must_roll(self.segment_bytes, self.segment_age_max_ms, size, batch.max_timestamp, end_offset - 1, now_ms):
            return self.declined(_DECLINE_LOG, batch)
        entry = None
        is_transaction_start = False
        if batch.producer_id >= 0:
            if verified_by is not None:
                is_transaction_start = True
                entry = self.producers.first_in_transaction(
                    batch.producer_id, batch.producer_epoch, batch.attributes, batch.base_sequence, verified_by
                )
            else:
                entry = self.producers.next_in_line(
                    batch.producer_id, batch.producer_epoch, batch.attributes, batch.base_sequence
                )
            if entry is None:
                return self.declined(_DECLINE_LOG, batch)
        append = FastAppend()
        append.batch = batch
        append.decline = _DECLINE_NO
        append.entry = entry
        append.is_transaction_start = is_transaction_start
        append.leader_epoch = leader_epoch
        append.now_ms = now_ms
        append.records = records
        return append

    def declined(self, decline: int, batch: CheckedBatch | None = None) -> FastAppend:
        """The answer that a batch is not written: why, and what is known of it."""
        append = FastAppend()
        append.batch = batch
        append.decline = decline
        append.entry = append.records = None
        return append

    def write(self, append: FastAppend) -> int:
        """Write what `check_fast` has passed, with nothing appended since; returns its first offset.

        `OttlaError` if the disk fails.
        """
        if self.write_barrier is not None:
            raise self.write_barrier
        batch: Any = append.batch
        records: Any = append.records
        first_offset = self.log_end_offset
        end_offset = first_offset + batch.count
        size = batch.size_bytes
        _PLACE.pack_into(records, 0, first_offset, size - _LOG_OVERHEAD, append.leader_epoch)
        segment = self.segments.active
        producers = self.producers
        try:
            segment.append_one(records, size, first_offset, end_offset - 1, batch.max_timestamp)
        except OSError as error:
            raise self.fail(error) from error
        self.log_end_offset = end_offset
        if append.entry is None:
            producers.map_end_offset = end_offset
        else:
            if append.is_transaction_start:
                producers.begin_transaction(append.entry, batch.producer_id, batch.producer_epoch, first_offset)
            producers.count_in(append.entry, batch.base_sequence, first_offset, batch.count - 1, batch.max_timestamp)
            append.entry.seen_ms = append.now_ms
        return first_offset

    def append_followed(self, data: Buffer, leader_epoch: int, now_ms: int) -> int:
        """Append the batches `data` as the leader of `leader_epoch` sent them, offsets and all; returns the first offset.

        -1, with nothing changed, to have them appended on the general path. Here go whole batches of the log's newest epoch, in
        order, each the next one of its producer or without one. `OttlaError` if the disk fails.
        """
        size = len(data)
        if self.write_barrier is not None or not size or not self.epochs.is_latest(leader_epoch):
            return -1
        view = memoryview(data)
        producers: Any = self.producers
        batches: list[Any] = []
        in_line: dict[int, Any] = {}  # producer → its entry, epoch and kind of batch, and the sequence that comes next
        end_offset, max_timestamp, position = self.log_end_offset, _UNKNOWN, 0
        while position < size:
            if size - position < _HEADER_SIZE:
                return -1
            (
                base_offset,
                length,
                epoch,
                magic,
                crc,
                attributes,
                delta,
                _,
                timestamp,
                producer_id,
                producer_epoch,
                sequence,
                _,
            ) = _HEADER.unpack_from(view, position)
            end = position + _LOG_OVERHEAD + length
            if magic != _MAGIC or length < _BATCH_LENGTH_MIN or end > size or epoch != leader_epoch:
                return -1
            if base_offset < end_offset or delta < 0 or crc32c(view[position + _CRC_START : end]) != crc:
                return -1
            entry = None
            if producer_id >= 0:
                kind = attributes & _TRANSACTIONAL_OR_CONTROL
                known = in_line.get(producer_id)
                if known is None:
                    entry = producers.next_in_line(producer_id, producer_epoch, attributes, sequence)
                elif known[1:] == (producer_epoch, kind, sequence):
                    entry = known[0]
                if entry is None:
                    return -1
                in_line[producer_id] = (entry, producer_epoch, kind, (sequence + delta + 1) & 0x7FFFFFFF)
            batches.append((end - position, base_offset, delta, timestamp, entry, sequence))
            end_offset = base_offset + delta + 1
            max_timestamp = max(max_timestamp, timestamp)
            position = end
        if end_offset - self.recovery_point >= self.flush_messages:
            return -1
        segment: Any = self.segments.active
        if segment.is_dormant or (segment._first_timestamp == _UNKNOWN and segment.file.size):
            return -1
        if segment.must_roll(self.segment_bytes, self.segment_age_max_ms, size, max_timestamp, end_offset - 1, now_ms):
            return -1
        try:
            position = segment.file.append(data)
            for length, base_offset, delta, timestamp, entry, sequence in batches:
                segment.count_in(position, length, base_offset, base_offset + delta, timestamp)
                position += length
                if entry is not None:
                    producers.count_in(entry, sequence, base_offset, delta, timestamp)
                    entry.seen_ms = now_ms
        except OSError as error:
            raise self.fail(error) from error
        self.log_end_offset = end_offset
        producers.map_end_offset = end_offset
        return int(batches[0][1])

    def append_marker(
        self,
        marker: bytearray,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        transaction_version: int,
        leader_epoch: int,
        now_ms: int,
    ) -> int:
        """Append the batch `marker`, made now by this node, which commits a transaction; returns its offset.

        -1, with nothing changed, to have it appended on the general path. `OttlaError` if the disk fails.
        """
        size = len(marker)
        if self.write_barrier is not None or not self.epochs.is_latest(leader_epoch) or not self.limits.takes_own(size):
            return -1
        offset = self.log_end_offset
        if offset + 1 - self.recovery_point >= self.flush_messages:
            return -1
        segment = self.segments.active
        if segment.is_dormant or (segment._first_timestamp == _UNKNOWN and segment.file.size):
            return -1
        if segment.must_roll(self.segment_bytes, self.segment_age_max_ms, size, now_ms, offset, now_ms):
            return -1
        entry = self.producers.in_transaction(producer_id, epoch, coordinator_epoch, transaction_version)
        if entry is None:
            return -1
        _PLACE.pack_into(marker, 0, offset, size - _LOG_OVERHEAD, leader_epoch)
        try:
            segment.append_one(marker, size, offset, offset, now_ms)
        except OSError as error:
            raise self.fail(error) from error
        self.log_end_offset = offset + 1
        self.producers.commit_transaction(entry, producer_id, epoch, coordinator_epoch, offset, now_ms)
        entry.seen_ms = now_ms
        return offset

    def increment_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset`; True if it was lower. It is never lowered here."""
        if offset > self.log_end_offset:
            raise BrokenInvariant(f"{self}: high watermark {offset} lies past the log's end {self.log_end_offset}")
        if offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        if self.producers._unreplicated:
            self.producers.on_high_watermark(offset)
        return True

    def fail(self, error: OSError) -> Exception:
        """Note that the disk has failed; returns what to raise."""
        raise NotImplementedError
