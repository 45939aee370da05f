# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""Records walked and turned into columns without an object per record, in one source for two variants.

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

    def walk_unlocked(self, data: Buffer, start: int, end: int, count: int, base_timestamp: int) -> None:
        """Like `walk`, but other threads run meanwhile. Not for an event loop: it would wait for them."""
        self.begin(data, start, end, count)
        raw = views.raw_of(data)
        unlocked = views.unlock(end - start)
        is_whole = self._step(raw, end, count, base_timestamp)
        views.lock(unlocked)
        self._check(end, count, is_whole)

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
        if end > len(data) or until_index > self.count:
            raise CorruptRecords(f"{until_index} records up to byte {end} are not what the walk was begun with")
        self._check(end, until_index, self._step(views.raw_of(data), end, until_index, base_timestamp))

    def _check(self, end: int, until_index: int, is_whole: bool) -> None:
        if not is_whole:
            raise _damaged(self.index, self.position)
        if until_index >= self.count and self.position != end:
            raise CorruptRecords(
                f"{end - self.position} bytes are left over after the batch's {self.count} records", self.position
            )

    def _step(self, raw: Buffer, end: int, until_index: int, base_timestamp: int) -> bool:
        """Walk up to record `until_index`; False at a damaged one, whose index and position the walk then has."""
        is_whole = True
        min_timestamp, max_timestamp = self.min_timestamp, self.max_timestamp
        displaced, keyless, valueless = self.displaced, self.keyless, self.valueless
        key_bytes, value_bytes = self.key_bytes, self.value_bytes
        header_count, header_key_bytes, header_value_bytes = self.header_count, self.header_key_bytes, self.header_value_bytes
        position, index = self.position, self.index
        while index < until_index:
            limit, delta, offset_delta, _, key_size, _, value_size, header_at = _parse_record(raw, position, end)
            if limit < 0:
                is_whole = False
                break
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
                    is_whole = False
                    break
                header_count += headers
                header_key_bytes += key_size
                header_value_bytes += value_size
            position = limit
            index += 1
        self.index, self.position = index, position
        self.min_timestamp, self.max_timestamp = min_timestamp, max_timestamp
        self.displaced, self.keyless, self.valueless = displaced, keyless, valueless
        self.key_bytes, self.value_bytes = key_bytes, value_bytes
        self.header_count, self.header_key_bytes, self.header_value_bytes = header_count, header_key_bytes, header_value_bytes
        return is_whole


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
    """What `RecordWalk.walk_unlocked` finds, as a tuple.

    (smallest timestamp, largest timestamp, records whose offset delta is not their position, records without key, records
    without value, bytes of keys, bytes of values, headers, bytes of header keys, bytes of header values).
    """
    found = RecordWalk()
    found.walk_unlocked(data, start, end, count, base_timestamp)
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
        if start < 0 or end > len(data) or count > len(self._offsets) - row:
            raise CorruptRecords(f"{count} records do not fit into columns of {len(self._offsets)} rows, {row} of them filled")
        raw = views.raw_of(data)
        unlocked = views.unlock(end - start)
        position = self._fill(raw, start, end, count, base_offset, base_timestamp, is_append_time)
        views.lock(unlocked)
        if position >= 0:
            raise _damaged(self._row - row, position)

    def _fill(
        self, raw: Buffer, position: int, end: int, count: int, base_offset: int, base_timestamp: int, is_append_time: bool
    ) -> int:
        """Add rows; returns -1, or where a record is damaged."""
        row = self._row
        last = row + count
        # Views are held in names here and below because the compiled variant counts every use of an attribute's view.
        key_ends, key_data, value_ends, value_data = self._key_ends, self._key_data, self._value_ends, self._value_data
        keys_out, values_out = views.out_of(key_data), views.out_of(value_data)
        key_end = key_ends[row]
        value_end = value_ends[row]
        while row < last:
            limit, delta, offset_delta, key_at, key_size, value_at, value_size, header_at = _parse_record(raw, position, end)
            if not self._has_keys:
                key_size = -1
            if not self._has_values:
                value_size = -1
            if limit < 0 or key_size > len(key_data) - key_end or value_size > len(value_data) - value_end:
                break
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
                break
            row += 1
            key_ends[row] = key_end
            value_ends[row] = value_end
            self._header_lists[row] = self._headers
            position = limit
        self._row = row
        return -1 if row == last else position

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
