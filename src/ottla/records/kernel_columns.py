# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""Records walked and turned into columns and back without an object per record, in one source for two variants.

The rules are those of `kernel.py`, whose header explains the record's format. Here the buffers are views (of bytes, 32-bit or
64-bit numbers), typed in the compiled variant, so a batch is read where it lies; what is called `raw` or `…out` is the bytes
of a view. No bounds are checked unless written down: every function compares before it reads or writes.

Columns are in Arrow's layout: a column of bytes is a bitmap of what is not null (bit i of byte i // 8, lowest first), one more
ascending 32-bit position than there are rows, and the bytes themselves; headers are a list column of (key, value) structs.
"""

from ottla.errors import CorruptRecords
from ottla.records import kernel_fields as fields
from ottla.records import kernel_views as views
from ottla.records.kernel_fields import Buffer, Target

_RECORD_SIZE_MIN = 7


def _parse_record(raw: Buffer, position: int, end: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Where the parts of the record at `position` are: (its end, timestamp delta, offset delta, key, key size, value, value
    size, header count and headers). A size below zero is a null. The end is -1 where any part reaches beyond `end`.
    """
    size, position = fields.varint(raw, position, end, 32)
    if position > end or size < _RECORD_SIZE_MIN - 1 or size > end - position:
        return -1, 0, 0, 0, 0, 0, 0, 0
    limit = position + size
    timestamp_delta, position = fields.varint(raw, position + 1, limit, 64)
    offset_delta, position = fields.varint(raw, position, limit, 32)
    key_size, key_at = fields.varint(raw, position, limit, 32)
    if key_at > limit or key_size > limit - key_at:
        return -1, 0, 0, 0, 0, 0, 0, 0
    position = key_at
    if key_size > 0:
        position += key_size
    value_size, value_at = fields.varint(raw, position, limit, 32)
    if value_at > limit or value_size > limit - value_at:
        return -1, 0, 0, 0, 0, 0, 0, 0
    position = value_at
    if value_size > 0:
        position += value_size
    if position >= limit:
        return -1, 0, 0, 0, 0, 0, 0, 0
    return limit, timestamp_delta, offset_delta, key_at, key_size, value_at, value_size, position


def _parse_header(raw: Buffer, position: int, limit: int) -> tuple[int, int, int, int, int]:
    """Where the parts of the header at `position` are: (its end, key, key size, value, value size); end -1 for damage."""
    key_size, key_at = fields.varint(raw, position, limit, 32)
    if key_at > limit or key_size < 0 or key_size > limit - key_at:
        return -1, 0, 0, 0, 0
    value_size, value_at = fields.varint(raw, key_at + key_size, limit, 32)
    if value_at > limit or value_size > limit - value_at:
        return -1, 0, 0, 0, 0
    position = value_at
    if value_size > 0:
        position += value_size
    return position, key_at, key_size, value_at, value_size


def _damaged(index: int, position: int) -> CorruptRecords:
    return CorruptRecords(
        f"record {index} of the batch, at byte {position} of its records: a length is damaged or reaches beyond the record",
        position,
    )


def _measure_headers(raw: Buffer, position: int, limit: int) -> tuple[int, int, int]:
    """(headers, bytes of their keys, of their values) from the count at `position`; -1 headers unless they end at `limit`."""
    count, position = fields.varint(raw, position, limit, 32)
    if position > limit or count < 0:
        return -1, 0, 0
    key_bytes = 0
    value_bytes = 0
    left = count
    while left > 0:
        position, _, key_size, _, value_size = _parse_header(raw, position, limit)
        if position < 0:
            return -1, 0, 0
        key_bytes += key_size
        if value_size > 0:
            value_bytes += value_size
        left -= 1
    if position != limit:
        return -1, 0, 0
    return count, key_bytes, value_bytes


class RecordWalk:
    """What a walk over the records of a batch finds, in numbers. One may be used for walk after walk."""

    __slots__ = (
        "count",
        "displaced",
        "header_count",
        "header_key_bytes",
        "header_value_bytes",
        "index",
        "key_bytes",
        "keyless",
        "max_timestamp",
        "min_timestamp",
        "position",
        "value_bytes",
        "valueless",
    )

    def walk(self, data: Buffer, start: int, end: int, count: int, base_timestamp: int) -> None:
        """Look at the `count` records that must fill `data` from `start` to `end`, or raise `CorruptRecords`."""
        self.begin(data, start, end, count)
        self.go_on(data, end, count, base_timestamp)

    def begin(self, data: Buffer, start: int, end: int, count: int) -> None:
        """Begin a walk over the `count` records that must fill `data` from `start` to `end`."""
        if start < 0 or end < start or end > len(data):
            raise CorruptRecords(f"records from byte {start} to {end} do not lie in {len(data)} bytes")
        if count < 0 or count > (end - start) // _RECORD_SIZE_MIN or (count == 0 and start != end):
            raise CorruptRecords(f"{end - start} bytes of records cannot be the {count} records that the batch says it has")
        self.index, self.position, self.count = 0, start, count
        self.min_timestamp = self.max_timestamp = -1
        self.displaced = self.keyless = self.valueless = 0
        self.key_bytes = self.value_bytes = 0
        self.header_count = self.header_key_bytes = self.header_value_bytes = 0

    def go_on(self, data: Buffer, end: int, until_index: int, base_timestamp: int) -> None:
        """Walk up to record `until_index`. After the last of `begin`'s records nothing may be left over."""
        min_timestamp, max_timestamp = self.min_timestamp, self.max_timestamp
        displaced, keyless, valueless = self.displaced, self.keyless, self.valueless
        key_bytes, value_bytes = self.key_bytes, self.value_bytes
        header_count, header_key_bytes, header_value_bytes = self.header_count, self.header_key_bytes, self.header_value_bytes
        position, count = self.position, self.count
        if end > len(data) or until_index > count:
            raise CorruptRecords(f"{until_index} records up to byte {end} are not what the walk was begun with")
        raw = views.raw_of(data)
        for index in range(self.index, until_index):
            limit, delta, offset_delta, _, key_size, _, value_size, header_at = _parse_record(raw, position, end)
            if limit < 0:
                raise _damaged(index, position)
            timestamp = fields.wrap64(base_timestamp + delta)
            if index == 0 or timestamp < min_timestamp:
                min_timestamp = timestamp
            if index == 0 or timestamp > max_timestamp:
                max_timestamp = timestamp
            if offset_delta != index:
                displaced += 1
            if key_size < 0:
                keyless += 1
            else:
                key_bytes += key_size
            if value_size < 0:
                valueless += 1
            else:
                value_bytes += value_size
            if header_at != limit - 1 or raw[header_at] != 0:
                headers, key_size, value_size = _measure_headers(raw, header_at, limit)
                if headers < 0:
                    raise _damaged(index, position)
                header_count += headers
                header_key_bytes += key_size
                header_value_bytes += value_size
            position = limit
        if until_index >= count and position != end:
            raise CorruptRecords(f"{end - position} bytes are left over after the batch's {count} records", position)
        self.index, self.position = until_index, position
        self.min_timestamp, self.max_timestamp = min_timestamp, max_timestamp
        self.displaced, self.keyless, self.valueless = displaced, keyless, valueless
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self.header_count, self.header_key_bytes, self.header_value_bytes = header_count, header_key_bytes, header_value_bytes


class RecordScan:
    """Steps over the records of a batch without making objects of them, to find one by time or to look at each."""

    __slots__ = ("index", "is_keyless", "offset_delta", "position", "timestamp")

    def __init__(self) -> None:
        self.index, self.position = -1, 0
        self.timestamp = self.offset_delta = -1
        self.is_keyless = False

    def find(
        self, data: Buffer, count: int, base_timestamp: int, min_timestamp: int, min_offset_delta: int, records_max: int
    ) -> bool:
        """Step on, over `records_max` of the `count` records in `data` at most, to one at least as late and as high.

        True: the scan's fields tell of it. False: there is none among those looked at. `CorruptRecords` at a damaged one.
        """
        raw = views.raw_of(data)
        end = len(data)
        stop = self.index + 1 + records_max
        if stop > count:
            stop = count
        for index in range(self.index + 1, stop):
            limit, delta, offset_delta, _, key_size, _, _, _ = _parse_record(raw, self.position, end)
            if limit < 0:
                raise _damaged(index, self.position)
            timestamp = fields.wrap64(base_timestamp + delta)
            self.index = index
            self.position = limit
            if timestamp >= min_timestamp and offset_delta >= min_offset_delta:
                self.timestamp, self.offset_delta = timestamp, offset_delta
                self.is_keyless = key_size < 0
                return True
        return False


def walk_records(
    data: Buffer, start: int, end: int, count: int, base_timestamp: int
) -> tuple[int, int, int, int, int, int, int, int, int, int]:
    """The same as a tuple.

    (smallest timestamp, largest timestamp, records whose offset delta is not their position, records without key, records
    without value, bytes of keys, bytes of values, headers, bytes of header keys, bytes of header values).
    """
    found = RecordWalk()
    found.walk(data, start, end, count, base_timestamp)
    timestamps = (found.min_timestamp, found.max_timestamp)
    counts = (found.displaced, found.keyless, found.valueless)
    sizes = (found.key_bytes, found.value_bytes, found.header_count, found.header_key_bytes, found.header_value_bytes)
    return (*timestamps, *counts, *sizes)


def new_buffers(sizes: list[int]) -> list[bytearray]:
    """The buffers of a `ColumnWriter`, in their order. Only bitmaps and positions are zeroed: all of the others is written."""
    buffers: list[bytearray] = []
    for index in range(len(sizes)):
        if index in (0, 1, 4, 7, 10, 13):
            buffers.append(views.new_buffer(sizes[index]))
        else:
            buffers.append(bytearray(sizes[index]))
    return buffers


class ColumnWriter:
    """Fills the buffers of columns with the records of batch after batch.

    The buffers, in order: offsets and timestamps (64-bit); of the keys, then of the values: bitmap, positions (32-bit), bytes;
    of the headers: list positions (32-bit), key positions, key bytes, value bitmap, value positions, value bytes. They are
    from `new_buffers`, and as large as `walk_records` says they must be. Keys, values or headers that are not wanted stay null,
    and their buffers of bytes empty.
    """

    __slots__ = (
        "_has_headers",
        "_has_keys",
        "_has_values",
        "_header_key_data",
        "_header_key_ends",
        "_header_lists",
        "_header_value_data",
        "_header_value_ends",
        "_header_values",
        "_headers",
        "_key_data",
        "_key_ends",
        "_keys",
        "_offsets",
        "_row",
        "_timestamps",
        "_value_data",
        "_value_ends",
        "_values",
    )

    def __init__(self, buffers: list[Target], has_keys: bool = True, has_values: bool = True, has_headers: bool = True) -> None:
        self._has_keys, self._has_values, self._has_headers = has_keys, has_values, has_headers
        self._offsets = memoryview(buffers[0]).cast("q")
        self._timestamps = memoryview(buffers[1]).cast("q")
        self._keys = memoryview(buffers[2])
        self._key_ends = memoryview(buffers[3]).cast("i")
        self._key_data = memoryview(buffers[4])
        self._values = memoryview(buffers[5])
        self._value_ends = memoryview(buffers[6]).cast("i")
        self._value_data = memoryview(buffers[7])
        self._header_lists = memoryview(buffers[8]).cast("i")
        self._header_key_ends = memoryview(buffers[9]).cast("i")
        self._header_key_data = memoryview(buffers[10])
        self._header_values = memoryview(buffers[11])
        self._header_value_ends = memoryview(buffers[12]).cast("i")
        self._header_value_data = memoryview(buffers[13])
        self._row = 0
        self._headers = 0

    def add(
        self, data: Buffer, start: int, end: int, count: int, base_offset: int, base_timestamp: int, is_append_time: bool
    ) -> None:
        """The next `count` rows, from records that `walk_records` has found to be whole."""
        row = self._row
        # Views are held in names here and below because the compiled variant counts every use of an attribute's view.
        key_ends, key_data, value_ends, value_data = self._key_ends, self._key_data, self._value_ends, self._value_data
        if start < 0 or end > len(data) or count > len(self._offsets) - row:
            raise CorruptRecords(f"{count} records do not fit into columns of {len(self._offsets)} rows, {row} of them filled")
        raw, keys_out, values_out = views.raw_of(data), views.out_of(key_data), views.out_of(value_data)
        key_end = key_ends[row]
        value_end = value_ends[row]
        position = start
        for index in range(count):
            limit, delta, offset_delta, key_at, key_size, value_at, value_size, header_at = _parse_record(raw, position, end)
            if not self._has_keys:
                key_size = -1
            if not self._has_values:
                value_size = -1
            if limit < 0 or key_size > len(key_data) - key_end or value_size > len(value_data) - value_end:
                raise _damaged(index, position)
            self._offsets[row] = fields.wrap64(base_offset + offset_delta)
            self._timestamps[row] = base_timestamp if is_append_time else fields.wrap64(base_timestamp + delta)
            if key_size >= 0:
                self._keys[row >> 3] |= 1 << (row & 7)
                fields.copy(keys_out, key_end, raw, key_at, key_size)
                key_end += key_size
            if value_size >= 0:
                self._values[row >> 3] |= 1 << (row & 7)
                fields.copy(values_out, value_end, raw, value_at, value_size)
                value_end += value_size
            if (
                self._has_headers
                and (header_at != limit - 1 or raw[header_at] != 0)
                and not self._add_headers(raw, header_at, limit)
            ):
                raise _damaged(index, position)
            row += 1
            key_ends[row] = key_end
            value_ends[row] = value_end
            self._header_lists[row] = self._headers
            position = limit
        self._row = row

    def _add_headers(self, raw: Buffer, position: int, limit: int) -> bool:
        key_ends, key_data = self._header_key_ends, self._header_key_data
        value_ends, value_data = self._header_value_ends, self._header_value_data
        keys_out, values_out = views.out_of(key_data), views.out_of(value_data)
        left, position = fields.varint(raw, position, limit, 32)
        header = self._headers
        if position > limit or left < 0 or left > len(key_ends) - 1 - header:
            return False
        key_end = key_ends[header]
        value_end = value_ends[header]
        while left > 0:
            position, key_at, key_size, value_at, value_size = _parse_header(raw, position, limit)
            if position < 0 or key_size > len(key_data) - key_end or value_size > len(value_data) - value_end:
                return False
            fields.copy(keys_out, key_end, raw, key_at, key_size)
            key_end += key_size
            if value_size >= 0:
                self._header_values[header >> 3] |= 1 << (header & 7)
                fields.copy(values_out, value_end, raw, value_at, value_size)
                value_end += value_size
            header += 1
            key_ends[header] = key_end
            value_ends[header] = value_end
            left -= 1
        self._headers = header
        return position == limit


class ColumnReader:
    """Writes rows of columns as records. The buffers are those of `ColumnWriter`; an empty bitmap says that nothing is null.

    `size_of` must be asked first: it is what checks that the rows' positions lie in their buffers, and it says how much room
    `write` needs. Both number the records from 0, in the order of the rows.
    """

    __slots__ = (
        "_header_key_data",
        "_header_key_ends",
        "_header_lists",
        "_header_value_data",
        "_header_value_ends",
        "_header_values",
        "_key_data",
        "_key_ends",
        "_keys",
        "_no_bitmap",
        "_timestamps",
        "_value_data",
        "_value_ends",
        "_values",
    )

    def __init__(self, buffers: list[memoryview]) -> None:
        self._no_bitmap = memoryview(b"")
        self._timestamps = buffers[1].cast("q")
        self._keys = buffers[2]
        self._key_ends = buffers[3].cast("i")
        self._key_data = buffers[4]
        self._values = buffers[5]
        self._value_ends = buffers[6].cast("i")
        self._value_data = buffers[7]
        self._header_lists = buffers[8].cast("i")
        self._header_key_ends = buffers[9].cast("i")
        self._header_key_data = buffers[10]
        self._header_values = buffers[11]
        self._header_value_ends = buffers[12].cast("i")
        self._header_value_data = buffers[13]

    def body_size(self, row: int, delta: int, timestamp_delta: int) -> int:
        """Bytes of the record after its length; -1 where a position of the row does not lie in its buffer."""
        key_size = _field_size(self._keys, self._key_ends, len(self._key_data), row)
        value_size = _field_size(self._values, self._value_ends, len(self._value_data), row)
        if key_size < -1 or value_size < -1:
            return -1
        size = 1 + fields.varint_size(timestamp_delta) + fields.varint_size(delta)
        size += fields.varint_size(key_size) + fields.varint_size(value_size)
        if key_size > 0:
            size += key_size
        if value_size > 0:
            size += value_size
        if len(self._header_lists) == 0:
            return size + 1
        if row < 0 or row + 1 >= len(self._header_lists):
            return -1
        header = self._header_lists[row]
        last = self._header_lists[row + 1]
        if header < 0 or last < header:
            return -1
        size += fields.varint_size(last - header)
        while header < last:
            key_size = _field_size(self._no_bitmap, self._header_key_ends, len(self._header_key_data), header)
            value_size = _field_size(self._header_values, self._header_value_ends, len(self._header_value_data), header)
            if key_size < 0 or value_size < -1:
                return -1
            size += fields.varint_size(key_size) + key_size + fields.varint_size(value_size)
            if value_size > 0:
                size += value_size
            header += 1
        return size

    def size_of(self, first: int, count: int, base_timestamp: int) -> int:
        """Bytes that `count` rows from `first` take as records; `ValueError` where the columns contradict themselves."""
        if first < 0 or count < 0 or first + count > len(self._timestamps):
            raise ValueError(f"columns of {len(self._timestamps)} rows have no {count} rows from row {first} on")
        total = 0
        for delta in range(count):
            row = first + delta
            size = self.body_size(row, delta, fields.wrap64(self._timestamps[row] - base_timestamp))
            if size < 0:
                raise ValueError(f"row {row} of the columns has positions that do not lie in their buffers")
            total += fields.varint_size(size) + size
        return total

    def write(self, target: memoryview, position: int, first: int, count: int, base_timestamp: int) -> tuple[int, int]:
        """Write the rows as records into `target` from `position` on; returns (their end, the largest timestamp)."""
        if position < 0 or self.size_of(first, count, base_timestamp) > len(target) - position:
            raise ValueError(f"{len(target)} bytes are too few for {count} records at byte {position}")
        out = views.out_of(target)
        max_timestamp = -1
        for delta in range(count):
            row = first + delta
            timestamp = self._timestamps[row]
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            timestamp_delta = fields.wrap64(timestamp - base_timestamp)
            position = fields.put_varint(out, position, self.body_size(row, delta, timestamp_delta))
            out[position] = 0
            position = fields.put_varint(out, position + 1, timestamp_delta)
            position = fields.put_varint(out, position, delta)
            position = _write_field(out, position, self._keys, self._key_ends, self._key_data, row)
            position = _write_field(out, position, self._values, self._value_ends, self._value_data, row)
            if len(self._header_lists) == 0:
                out[position] = 0
                position += 1
                continue
            header = self._header_lists[row]
            last = self._header_lists[row + 1]
            position = fields.put_varint(out, position, last - header)
            while header < last:
                position = _write_field(out, position, self._no_bitmap, self._header_key_ends, self._header_key_data, header)
                position = _write_field(
                    out, position, self._header_values, self._header_value_ends, self._header_value_data, header
                )
                header += 1
        return position, max_timestamp


def _field_size(bitmap: memoryview, ends: memoryview, capacity: int, row: int) -> int:
    """Bytes of a field; -1 for null, -2 where its positions do not lie in the `capacity` bytes of its column."""
    if row < 0 or row + 1 >= len(ends):
        return -2
    if len(bitmap) > 0:
        if row >> 3 >= len(bitmap):
            return -2
        if not (bitmap[row >> 3] >> (row & 7)) & 1:
            return -1
    start = ends[row]
    stop = ends[row + 1]
    if start < 0 or stop < start or stop > capacity:
        return -2
    return stop - start


def _write_field(out: Target, position: int, bitmap: memoryview, ends: memoryview, data: Buffer, row: int) -> int:
    """Write a field behind its length; returns where it ends. `_field_size` has found it to be in order."""
    size = _field_size(bitmap, ends, len(data), row)
    position = fields.put_varint(out, position, size)
    if size <= 0:
        return position
    return fields.copy(out, position, views.raw_of(data), ends[row], size)
