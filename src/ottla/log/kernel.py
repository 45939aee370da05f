# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The end of a log, where everything is appended: what an append looks at and moves, in one source for two twins.

Base classes hold those numbers, for the compiled twin as C numbers: `LogTail` of `PartitionLog`, `SegmentTail` of `Segment`,
`IndexTail` of `SparseIndex`, `ProducersTail` of `ProducerState`, `ProducerTail` of `ProducerEntry`, `EpochsTail` of
`LeaderEpochs`. Everything else of these classes, whatever is rare or waits, is plain Python, in the files that bear their
names.

The usual append is here whole, in two steps. `LogTail.prepare` finds out whether there is anything to be said about a batch,
and changes nothing. `LogTail.commit` writes it, and moves the numbers only after the bytes are in the file. Whatever is not
usual (`prepare` gives None) goes the long way in `append.py`, which comes to the same.

The rules for both twins are those of `records/kernel.py`. One event loop, plain calls.
"""

from __future__ import annotations

from array import array
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.errors import BrokenInvariant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ottla.env import Buffer
    from ottla.log.producer_entry import ProducerEntry
    from ottla.records.kernel_batch import BatchLimits, UsualBatch

_PLACE = Struct(">qii")
"""The front of a batch: base offset, length, leader epoch. None of them is covered by its CRC."""

_LOG_OVERHEAD = 12
_CRC_START = 21
_TRANSACTIONAL_OR_CONTROL = 0x30
_TRANSACTIONAL = 0x10
_SEQUENCE_MASK = 0x7FFFFFFF
_RELATIVE_OFFSET_MAX = 0x7FFFFFFF
_BATCHES_REMEMBERED = 5
_NUMBERS_PER_BATCH = 5
BATCHES_REMEMBERED = _BATCHES_REMEMBERED
"""As many batches as a producer may have in flight, so that a retry of any of them is recognised."""
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
        "offset_index",
        "roll_jitter_ms",
        "time_index",
    )

    _first_timestamp: int
    """The largest timestamp of the first batch; `UNKNOWN_TIMESTAMP` until somebody asks."""
    _last_base_offset: int
    _last_offset: int
    _last_position: int
    _last_size: int
    """Of the batch that was appended last: 0 if none was since the segment was opened or cut."""
    _max_timestamp: int
    _max_timestamp_offset: int
    base_offset: int
    bytes_since_index_entry: int
    created_ms: int
    file: Any
    index_interval_bytes: int
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


class BatchMetadata(NamedTuple):
    """Where one batch of a producer went."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp_ms: int
    """The batch's largest timestamp."""

    @classmethod
    def ending_at(cls, last_sequence: int, last_offset: int, offset_delta: int, timestamp_ms: int) -> BatchMetadata:
        """From the four numbers that a snapshot keeps. Sequences go round from 2^31 - 1 to 0."""
        first_sequence = (last_sequence - offset_delta) & _SEQUENCE_MASK
        return cls(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp_ms)


class RecentBatches:
    """The last batches of a producer, oldest first: numbers in a ring, a `BatchMetadata` each for whoever asks."""

    __slots__ = ("_count", "_numbers", "_start")

    def __init__(self, batches: Iterable[BatchMetadata] = ()) -> None:
        self._numbers = array("q", bytes(8 * _NUMBERS_PER_BATCH * _BATCHES_REMEMBERED))
        self._start = self._count = 0
        self.extend(batches)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> BatchMetadata:
        if index < 0:
            index += self._count
        if index < 0 or index >= self._count:
            raise IndexError(f"there are {self._count} batches")
        numbers, at = self._numbers, self._place(index)
        return BatchMetadata(numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3], numbers[at + 4])

    def __iter__(self) -> Iterator[BatchMetadata]:
        return iter([self[index] for index in range(self._count)])

    def append(self, batch: BatchMetadata) -> None:
        """The newest; of too many, the oldest goes."""
        self.add(batch[0], batch[1], batch[2], batch[3], batch[4])

    def appendleft(self, batch: BatchMetadata) -> None:
        """One from before the oldest, which there must be room for."""
        if self._count == _BATCHES_REMEMBERED:
            raise IndexError(f"no more than {_BATCHES_REMEMBERED} batches are remembered")
        self._start = (self._start + _BATCHES_REMEMBERED - 1) % _BATCHES_REMEMBERED
        self._count += 1
        self._put(self._place(0), batch[0], batch[1], batch[2], batch[3], batch[4])

    def extend(self, batches: Iterable[BatchMetadata]) -> None:
        for batch in batches:
            self.append(batch)

    def clear(self) -> None:
        self._count = 0

    def add(self, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp_ms: int) -> None:
        """As `append`."""
        if self._count < _BATCHES_REMEMBERED:
            self._count += 1
        else:
            self._start = (self._start + 1) % _BATCHES_REMEMBERED
        self._put(self._place(self._count - 1), first_sequence, last_sequence, first_offset, last_offset, timestamp_ms)

    def follows(self, sequence: int) -> bool:
        """Whether a batch from `sequence` on is the next one, and is not among those that are remembered either."""
        if self._count == 0 or (self._numbers[self._place(self._count - 1) + 1] + 1) & _SEQUENCE_MASK != sequence:
            return False
        # After a gap (sequences went round, or a follower took them as they came) it may still be one of the last five.
        for index in range(self._count):  # noqa: SIM110 - a generator would be an object in the compiled twin
            if self._numbers[self._place(index)] == sequence:
                return False
        return True

    def _place(self, index: int) -> int:
        return (self._start + index) % _BATCHES_REMEMBERED * _NUMBERS_PER_BATCH

    def _put(
        self, at: int, first_sequence: int, last_sequence: int, first_offset: int, last_offset: int, timestamp_ms: int
    ) -> None:
        numbers = self._numbers
        numbers[at] = first_sequence
        numbers[at + 1] = last_sequence
        numbers[at + 2] = first_offset
        numbers[at + 3] = last_offset
        numbers[at + 4] = timestamp_ms


class ProducerTail:
    """One producer, as the next batch in its line looks at it."""

    __slots__ = ("batches", "epoch", "last_timestamp_ms", "transaction_first_offset")

    batches: RecentBatches
    epoch: int
    last_timestamp_ms: int
    transaction_first_offset: int | None


class ProducersTail:
    """The producers of a partition, as far as a batch that simply goes on where its producer was is concerned."""

    __slots__ = ("_producers", "_unreplicated", "_verifications", "map_end_offset")

    _producers: dict[int, ProducerEntry]
    _verifications: dict[int, Any]
    _unreplicated: dict[int, int]
    map_end_offset: int

    def next_in_line(self, producer_id: int, epoch: int, attributes: int, sequence: int) -> ProducerEntry | None:
        """The producer of a batch that is the next one in the same epoch and transaction: then every check is passed."""
        entry = self._producers.get(producer_id)
        if entry is None or entry.epoch != epoch or (self._verifications and producer_id in self._verifications):
            return None
        in_transaction = 0 if entry.transaction_first_offset is None else _TRANSACTIONAL
        if attributes & _TRANSACTIONAL_OR_CONTROL != in_transaction:
            return None
        return entry if entry.batches.follows(sequence) else None

    def count_in(
        self, entry: ProducerTail, sequence: int, first_offset: int, last_offset_delta: int, timestamp_ms: int
    ) -> None:
        """Note a batch of `entry` that was the next in line, once its bytes are in the log, which now ends with it."""
        last_offset = first_offset + last_offset_delta
        last_sequence = (sequence + last_offset_delta) & _SEQUENCE_MASK
        entry.batches.add(sequence, last_sequence, first_offset, last_offset, timestamp_ms)
        entry.last_timestamp_ms = timestamp_ms
        self.map_end_offset = last_offset + 1

    def on_high_watermark(self, high_watermark: int) -> None:
        """Transactions whose marker is below the high watermark are settled."""
        raise NotImplementedError


class Prepared:
    """A usual batch on its way into the log."""

    __slots__ = ("batch", "entry", "leader_epoch", "records")

    batch: UsualBatch
    entry: ProducerTail | None
    leader_epoch: int
    records: Buffer


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

    def prepare(
        self,
        data: Buffer,
        start: int,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        from_client: bool,
        request_version: int,
    ) -> Prepared | None:
        """The batch `records`, which lies in `data` from `start` on, if nothing stands in its way; None: go the long way."""
        size = len(records)
        batch = self.limits.check(data, start, start + size, records[_CRC_START:], now_ms, from_client, request_version)
        if batch is None or self.write_barrier is not None or not self.epochs.is_latest(leader_epoch):
            return None
        end_offset = self.log_end_offset + batch.count
        if end_offset - self.recovery_point >= self.flush_messages:
            return None
        segment = self.segments.active
        if segment._first_timestamp == _UNKNOWN and segment.file.size:
            return None  # it would have to be read from the file
        if segment.must_roll(self.segment_bytes, self.segment_age_max_ms, size, batch.max_timestamp, end_offset - 1, now_ms):
            return None
        entry = None
        if batch.producer_id >= 0:
            entry = self.producers.next_in_line(batch.producer_id, batch.producer_epoch, batch.attributes, batch.base_sequence)
            if entry is None:
                return None
        prepared = Prepared()
        prepared.batch = batch
        prepared.entry = entry
        prepared.leader_epoch = leader_epoch
        prepared.records = records
        return prepared

    def commit(self, prepared: Prepared) -> int:
        """Append what was prepared, with nothing appended since; returns its first offset. `OttlaError` if the disk fails."""
        if self.write_barrier is not None:
            raise self.write_barrier
        batch, records = prepared.batch, prepared.records
        first_offset = self.log_end_offset
        end_offset = first_offset + batch.count
        size = batch.size_bytes
        _PLACE.pack_into(records, 0, first_offset, size - _LOG_OVERHEAD, prepared.leader_epoch)
        segment = self.segments.active
        producers = self.producers
        try:
            segment.append_one(records, size, first_offset, end_offset - 1, batch.max_timestamp)
        except OSError as error:
            raise self.fail(error) from error
        self.log_end_offset = end_offset
        if prepared.entry is None:
            producers.map_end_offset = end_offset
        else:
            producers.count_in(prepared.entry, batch.base_sequence, first_offset, batch.count - 1, batch.max_timestamp)
        return first_offset

    def increment_high_watermark(self, offset: int) -> bool:
        """Raise the high watermark to `offset`; True if that was news. It never goes back this way."""
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
