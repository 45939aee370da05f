# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""Many records into open batches in one call, from lists and from columns in Arrow's layout, without an object per record.

The rules are those of `kernel.py`, and `kernel_accumulate.py` says what threads may do. The loops here allocate nothing that
the garbage collector tracks, so that in the compiled variant no other thread runs within one call.

Columns are as pyarrow has them: a bitmap of what is not null (bit i of byte i // 8, lowest first; empty: nothing is null), one
more ascending position than there are rows, of 32 or 64 bits, and the bytes; `first` is the row at which a slice begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.records import kernel_fields as fields
from ottla.records import kernel_views as views

if TYPE_CHECKING:
    from ottla.records.kernel_accumulate import OpenBatch, TopicBatches

_RUN_SIZE = 16
_NO_HEADERS = b"\x00"
_RUNS_FIRST = 64
_DAMAGED = -2
_HEADER_NUMBERS_SIZE_MAX = 10
_INT32_MAX = 0x7FFFFFFF
_last_owner = 0


class Places:
    """Where the records of one call are: runs of records that lie one behind the other in a batch.

    A run is 16 bytes: the number of its first record (8), the number of its batch in `batches` (4), and the index there (4).
    """

    __slots__ = ("_last", "_next", "_runs", "_size", "batches", "count", "owner")

    def __init__(self) -> None:
        global _last_owner
        _last_owner += 1
        self.owner = _last_owner
        self.batches: list[Any] = []
        """The batches, in the order in which they were met. One may be there twice if calls of two threads share it."""
        self.count = 0
        self._runs = bytearray(_RUN_SIZE * _RUNS_FIRST)
        self._size = 0
        self._last: Any = None
        self._next = -1

    def add(self, batch: OpenBatch, index: int) -> None:
        """The next record has this index in this batch."""
        if batch is not self._last or index != self._next:
            self._start_run(batch, index)
        self._next = index + 1
        self.count += 1

    def _start_run(self, batch: OpenBatch, index: int) -> None:
        if batch.place_owner != self.owner:
            batch.place_owner = self.owner
            batch.place_number = len(self.batches)
            self.batches.append(batch)
        if self._size + _RUN_SIZE > len(self._runs):
            self._runs.extend(bytes(len(self._runs)))
        out = self._runs
        fields.put_number(out, self._size, self.count, 8)
        fields.put_number(out, self._size + 8, batch.place_number, 4)
        fields.put_number(out, self._size + 12, index, 4)
        self._size += _RUN_SIZE
        self._last = batch

    def run_count(self) -> int:
        """How many runs there are."""
        return self._size // _RUN_SIZE

    def run(self, number: int) -> tuple[int, Any, int, int]:
        """A run as (number of its first record, batch, index of that record in the batch, how many records)."""
        if number < 0 or number * _RUN_SIZE >= self._size:
            raise IndexError(f"there is no run {number}")
        raw = self._runs
        at = number * _RUN_SIZE
        start = fields.number(raw, at, 8)
        end = fields.number(raw, at + _RUN_SIZE, 8) if at + _RUN_SIZE < self._size else self.count
        return start, self.batches[fields.number(raw, at + 8, 4)], fields.number(raw, at + 12, 4), end - start

    def run_of(self, record: int) -> int:
        """The number of the run that a record is in."""
        if record < 0 or record >= self.count:
            raise IndexError(f"there is no record {record}")
        raw = self._runs
        low = 0
        high = self._size // _RUN_SIZE
        while high - low > 1:
            middle = (low + high) // 2
            if fields.number(raw, middle * _RUN_SIZE, 8) <= record:
                low = middle
            else:
                high = middle
        return low


def append_list(
    topic: TopicBatches,
    partition: int,
    timestamp: int,
    values: list[Any],
    keys: list[Any] | None,
    headers: list[bytes] | None,
    start: int,
    places: Places,
) -> int:
    """Add values from `start` on to the open batches; returns the index of the first that was not added.

    It stops at a value or key that is not bytes or None, and where the caller must open a batch. `headers` are packed, and as
    many as there are values.
    """
    if _COMPILED:
        return _append_list(topic, partition, timestamp, values, keys, headers, start, places)
    with topic.lock:
        return _append_list(topic, partition, timestamp, values, keys, headers, start, places)


def _append_list(
    topic: TopicBatches,
    partition: int,
    timestamp: int,
    values: list[Any],
    keys: list[Any] | None,
    headers: list[bytes] | None,
    start: int,
    places: Places,
) -> int:
    packed = headers_raw = _NO_HEADERS
    end = len(values)
    if keys is not None and len(keys) < end:
        end = len(keys)
    if headers is not None and len(headers) < end:
        end = len(headers)
    for index in range(start, end):
        if headers is not None:
            packed = headers[index]
            headers_raw = packed
        key_raw = value_raw = headers_raw
        key_size = value_size = -1
        value = values[index]
        if value is not None:
            if type(value) is not bytes:
                return index
            bytes_value = value
            value_raw = bytes_value
            value_size = len(bytes_value)
        if keys is not None:
            key = keys[index]
            if key is not None:
                if type(key) is not bytes:
                    return index
                bytes_key = key
                key_raw = bytes_key
                key_size = len(bytes_key)
        if not _append(
            topic, partition, timestamp, key_raw, 0, key_size, value_raw, 0, value_size, headers_raw, len(packed), places
        ):
            return index
    return end


def _append(
    topic: TopicBatches,
    partition: int,
    timestamp: int,
    key: fields.Buffer,
    key_at: int,
    key_size: int,
    value: fields.Buffer,
    value_at: int,
    value_size: int,
    headers: fields.Buffer,
    headers_size: int,
    places: Places,
) -> bool:
    """Add one record to the open batch of its partition (-1: by its key); False if there is none or it is full."""
    is_keyless = partition < 0 and (key_size < 0 or topic.ignores_keys)
    if is_keyless:
        partition = topic.sticky
    elif partition < 0:
        partition = topic._hashed(key, key_at, key_size)
    if partition < 0 or partition >= topic.partition_count:
        return False
    batch = topic.open[partition]
    if batch is None:
        return False
    before = batch.end
    index = batch._append_raw(timestamp, key, key_at, key_size, value, value_at, value_size, headers, headers_size)
    if index < 0:
        return False
    if is_keyless:
        topic.produced(batch.end - before, batch.end)
    places.add(batch, index)
    return True


class BytesColumn:
    """A column of bytes or strings."""

    __slots__ = ("bitmap", "data", "ends", "first", "is_null", "is_wide", "limit", "wide_ends")

    def __init__(
        self, bitmap: memoryview, ends: memoryview, data: memoryview, first: int, is_wide: bool, limit: int = -1
    ) -> None:
        """`ends` are positions of 64 bits if `is_wide`, else of 32; without any, every row is null.

        They reach up to `limit`, by default the end of `data`.
        """
        self.bitmap = bitmap.cast("B")
        self.is_wide = is_wide
        self.is_null = len(ends) == 0
        self.ends = memoryview(b"").cast("i") if is_wide else ends.cast("B").cast("i")
        self.wide_ends = ends.cast("B").cast("q") if is_wide else memoryview(b"").cast("q")
        self.data = data.cast("B")
        self.limit = len(data) if limit < 0 else limit
        self.first = first

    def start(self, row: int) -> int:
        """Where a row's bytes begin in `data`. The row has passed `size`."""
        row += self.first
        return self.wide_ends[row] if self.is_wide else self.ends[row]

    def size(self, row: int) -> int:
        """How many bytes a row has; -1 for null, -2 if its positions do not lie in the buffers."""
        if self.is_null:
            return -1
        row += self.first
        if row < 0:
            return _DAMAGED
        if len(self.bitmap) > 0:
            if row >> 3 >= len(self.bitmap):
                return _DAMAGED
            if not (self.bitmap[row >> 3] >> (row & 7)) & 1:
                return -1
        if self.is_wide:
            if row + 1 >= len(self.wide_ends):
                return _DAMAGED
            begin = self.wide_ends[row]
            end = self.wide_ends[row + 1]
        else:
            if row + 1 >= len(self.ends):
                return _DAMAGED
            begin = self.ends[row]
            end = self.ends[row + 1]
        if begin < 0 or end < begin or end > self.limit or end - begin > _INT32_MAX:
            return _DAMAGED
        return end - begin


class NumbersColumn:
    """A column of 64-bit numbers that are not negative: partitions or timestamps."""

    __slots__ = ("bitmap", "first", "numbers")

    def __init__(self, bitmap: memoryview, numbers: memoryview, first: int) -> None:
        """Without any numbers, every row is null."""
        self.bitmap = bitmap.cast("B")
        self.numbers = numbers.cast("B").cast("q")
        self.first = first

    def get(self, row: int, default: int) -> int:
        """A row's number, `default` for null; -2 if it is negative or lies outside the buffers."""
        if len(self.numbers) == 0:
            return default
        row += self.first
        if row < 0 or row >= len(self.numbers):
            return _DAMAGED
        if len(self.bitmap) > 0:
            if row >> 3 >= len(self.bitmap):
                return _DAMAGED
            if not (self.bitmap[row >> 3] >> (row & 7)) & 1:
                return default
        return self.numbers[row] if self.numbers[row] >= 0 else _DAMAGED


class HeadersColumn:
    """A column of lists of (key, value): Arrow's list of structs, or map."""

    __slots__ = ("keys", "lists", "packed", "packed_size", "values")

    def __init__(self, lists: BytesColumn, keys: BytesColumn, values: BytesColumn) -> None:
        """`lists` says which entries of `keys` and `values` are a row's: positions up to the number of entries, no data."""
        self.lists = lists
        self.keys = keys
        self.values = values
        self.packed = bytearray(256)
        """The last row's headers, as a record ends with them."""
        self.packed_size = 0

    def pack(self, row: int) -> bool:
        """Write a row's headers into `packed`; False if they are damaged or a key is null."""
        count = self.lists.size(row)
        if count == _DAMAGED:
            return False
        entry = self.lists.start(row) if count > 0 else 0
        if count < 0:
            count = 0
        self._make_room(_HEADER_NUMBERS_SIZE_MAX)
        out = self.packed
        self.packed_size = fields.put_varint(out, 0, count)
        while count > 0:
            key_size = self.keys.size(entry)
            if key_size < 0 or not self._pack_field(self.keys, entry) or not self._pack_field(self.values, entry):
                return False
            entry += 1
            count -= 1
        return True

    def _pack_field(self, column: BytesColumn, entry: int) -> bool:
        size = column.size(entry)
        if size == _DAMAGED:
            return False
        self._make_room(self.packed_size + _HEADER_NUMBERS_SIZE_MAX + size)
        out = self.packed
        self.packed_size = fields.put_varint(out, self.packed_size, size)
        if size > 0:
            self.packed_size = fields.copy(out, self.packed_size, views.raw_of(column.data), column.start(entry), size)
        return True

    def _make_room(self, size: int) -> None:
        if size > len(self.packed):
            self.packed.extend(bytes(size))


class RecordColumns:
    """The columns of one Arrow record batch. Without headers, every record has none."""

    __slots__ = ("headers", "keys", "partitions", "rows", "timestamps", "values")

    def __init__(
        self,
        rows: int,
        keys: BytesColumn,
        values: BytesColumn,
        headers: HeadersColumn | None,
        partitions: NumbersColumn,
        timestamps: NumbersColumn,
    ) -> None:
        self.rows = rows
        self.keys = keys
        self.values = values
        self.headers = headers
        self.partitions = partitions
        self.timestamps = timestamps

    def append(self, topic: TopicBatches, partition: int, timestamp: int, start: int, places: Places) -> int:
        """Add rows from `start` on to the open batches; returns the first that was not added.

        `partition` (-1: by key) and `timestamp` are for rows that have none. It stops at a damaged row, and where the caller
        must open a batch.
        """
        if _COMPILED:
            return self._append(topic, partition, timestamp, start, places)
        with topic.lock:
            return self._append(topic, partition, timestamp, start, places)

    def _append(self, topic: TopicBatches, partition: int, timestamp: int, start: int, places: Places) -> int:
        keys, values, packed = self.keys, self.values, self.headers
        no_headers = _NO_HEADERS
        headers: fields.Buffer = no_headers
        headers_size = 1
        empty: fields.Buffer = no_headers
        for row in range(start, self.rows):
            key_size = keys.size(row)
            value_size = values.size(row)
            number = self.partitions.get(row, partition)
            stamp = self.timestamps.get(row, timestamp)
            if key_size == _DAMAGED or value_size == _DAMAGED or number == _DAMAGED or stamp == _DAMAGED:
                return row
            if packed is not None:
                if not packed.pack(row):
                    return row
                headers = packed.packed
                headers_size = packed.packed_size
            key_raw = value_raw = empty
            key_at = value_at = 0
            if key_size > 0:
                key_raw = views.raw_of(keys.data)
                key_at = keys.start(row)
            if value_size > 0:
                value_raw = views.raw_of(values.data)
                value_at = values.start(row)
            if not _append(
                topic, number, stamp, key_raw, key_at, key_size, value_raw, value_at, value_size, headers, headers_size, places
            ):
                return row
        return self.rows

    def record(self, row: int, partition: int, timestamp: int) -> tuple[int, int, bytes | None, bytes | None, bytes]:
        """A row as (partition, timestamp, key, value, packed headers); `ValueError` says what is wrong with it."""
        number = self.partitions.get(row, partition)
        if number == _DAMAGED:
            raise ValueError("its partition is negative, or missing from the column's buffer")
        stamp = self.timestamps.get(row, timestamp)
        if stamp == _DAMAGED:
            raise ValueError("its timestamp is negative, or missing from the column's buffer")
        key = _bytes_of(self.keys, row, "key")
        value = _bytes_of(self.values, row, "value")
        if self.headers is None:
            return number, stamp, key, value, _NO_HEADERS
        if not self.headers.pack(row):
            raise ValueError("a header has no key, or its positions do not lie in the column's buffers")
        return number, stamp, key, value, bytes(self.headers.packed[: self.headers.packed_size])


def _bytes_of(column: BytesColumn, row: int, name: str) -> bytes | None:
    size = column.size(row)
    if size == _DAMAGED:
        raise ValueError(f"the positions of its {name} do not lie in the column's buffers")
    if size < 0:
        return None
    start = column.start(row)
    return bytes(column.data[start : start + size])


# A compiled function is no plain function: that is how the variants know which of them they are.
_COMPILED = type(append_list).__name__ != "function"
