# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""Records to bytes and bytes to records: the loop that runs once per record, in one source for two variants.

As plain Python this file is complete. Compiled with Cython, the types in `kernel.pxd` turn the same statements into C: a name
called `raw` or `out` is then a pointer, indexing it reads a byte and slicing it makes a `bytes`, which is what the pure variant
does with a `bytes` or `bytearray`. So that both variants mean the same:

- every length is compared with what is left of its record *before* the bytes are touched, because the compiled variant
  checks no bounds by itself;
- numbers that could leave 64 bits are wrapped by hand where C would wrap them (`fields.wrap64`), as Java does;
- numbers and bytes are read and written with the functions of `kernel_fields.py`;
- nothing here may import `cython`, so that installs without it work.

Record: length varint | attributes int8 | timestampDelta varlong | offsetDelta varint | keyLength varint (negative: null) key |
valueLength varint value | header count varint, (keyLength varint, key, valueLength varint, value)... Varints are zigzag.
Header keys that are not UTF-8 survive reading and writing (surrogate escapes).
"""

from collections.abc import Sequence

from ottla.errors import CorruptRecords
from ottla.records import kernel_fields as fields

_RECORD_SIZE_MIN = 7
"""No record is shorter: its length, attributes, two deltas, two lengths and the header count take a byte each."""

_GROWTH_MIN = 4096
_SCRATCH_SIZE = 64
_NAME_SIZE_MAX = 64
_NAME_SLOT_MASK = 0x7F
_NAMES: list[tuple[bytes, str]] = [(b"", "")] * (_NAME_SLOT_MASK + 1)
_NO_HEADERS = b"\x00"

# Named, because the compiled variant knows these names as C numbers; as literals they would become Python objects there.
_INT32_MAX = 0x7FFFFFFF
_INT64_MAX = 0x7FFFFFFFFFFFFFFF
_INT64_MIN = -_INT64_MAX - 1

Headers = tuple[tuple[str, bytes | None], ...]
Row = tuple[int, bytes | None, bytes | None, Headers]
"""A record that has no offset yet: (timestamp, key, value, headers)."""


class Record:
    """One record of a log. Treat it as immutable: the compiled variant enforces that.

    Headers are kept as the bytes they are on the wire and decoded when read: most readers never read them, and the garbage
    collector does not track a record without a tuple inside.
    """

    __slots__ = ("_headers", "key", "offset", "timestamp", "value")

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    _headers: bytes

    def __init__(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers = ()) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self._headers = _NO_HEADERS
        if headers:
            scratch = bytearray(_SCRATCH_SIZE)
            size = _encode_headers(scratch, headers)
            self._headers = bytes(scratch[:size])

    @property
    def headers(self) -> Headers:
        """((key, value), ...), decoded with every call."""
        return () if self._headers is _NO_HEADERS else _decode_headers(self._headers)

    def astuple(self) -> tuple[int, int, bytes | None, bytes | None, Headers]:
        """(offset, timestamp, key, value, headers)."""
        return (self.offset, self.timestamp, self.key, self.value, self.headers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return self.astuple() == other.astuple()

    def __hash__(self) -> int:
        return hash(self.astuple())

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )


def _write_field(buffer: bytearray, position: int, field: bytes | None) -> int:
    """Write `field` behind its length at `position`; returns where it ends."""
    if field is None:
        buffer[position] = 1
        return position + 1
    size = len(field)
    return fields.copy(buffer, fields.put_varint(buffer, position, size), field, 0, size)


def encode_records(
    buffer: bytearray, position: int, records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[int, int]:
    """Write `records` into `buffer` from `position` on, growing it as needed; returns (their end, the largest timestamp)."""
    max_timestamp = -1
    for record in records:
        timestamp = record.timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        timestamp_delta = fields.wrap64(timestamp - base_timestamp)
        offset_delta = fields.wrap64(record.offset - base_offset)
        tail = record._headers
        position = _encode(buffer, position, timestamp_delta, offset_delta, record.key, record.value, tail, len(tail))
    return position, max_timestamp


def encode_rows(buffer: bytearray, position: int, rows: Sequence[Row], base_timestamp: int) -> tuple[int, int]:
    """As `encode_records`, for records that have no offsets yet: they are numbered from 0."""
    max_timestamp = -1
    offset_delta = 0
    scratch = bytearray(_SCRATCH_SIZE)
    for timestamp, key, value, headers in rows:
        stamp = _checked64(timestamp)
        if stamp > max_timestamp:
            max_timestamp = stamp
        size = _encode_headers(scratch, headers)
        position = _encode(buffer, position, fields.wrap64(stamp - base_timestamp), offset_delta, key, value, scratch, size)
        offset_delta += 1  # noqa: SIM113 - a C number in the compiled variant, which enumerate would make an object
    return position, max_timestamp


def _checked64(value: int) -> int:
    """`value`, or `OverflowError` where the compiled variant could not hold it."""
    if value > _INT64_MAX or value < _INT64_MIN:
        raise OverflowError(f"{value} does not fit into 64 bits")
    return value


def _encode(
    buffer: bytearray,
    position: int,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: bytes | bytearray,
    headers_size: int,
) -> int:
    """Write one record at `position`; returns where it ends. `ValueError` if its offset is not within reach of the base."""
    if offset_delta < 0 or offset_delta > _INT32_MAX:
        raise ValueError(f"a record {offset_delta} offsets after its batch's base does not fit into that batch")
    key_size = -1 if key is None else len(key)
    value_size = -1 if value is None else len(value)
    size = 1 + fields.varint_size(timestamp_delta) + fields.varint_size(offset_delta)
    size += fields.varint_size(key_size) + fields.varint_size(value_size) + headers_size
    if key_size > 0:
        size += key_size
    if value_size > 0:
        size += value_size
    needed = position + size + 10
    if needed > len(buffer):
        buffer.extend(bytes(max(needed - len(buffer), len(buffer), _GROWTH_MIN)))
    out = buffer
    position = fields.put_varint(out, position, size)
    out[position] = 0
    position = fields.put_varint(out, position + 1, timestamp_delta)
    position = fields.put_varint(out, position, offset_delta)
    position = _write_field(buffer, position, key)
    position = _write_field(buffer, position, value)
    return fields.copy(buffer, position, headers, 0, headers_size)


def _encode_headers(scratch: bytearray, headers: Headers) -> int:
    """Write the header count and the headers, as a record ends with them, into `scratch`; returns where they end."""
    if not headers:
        scratch[0] = 0
        return 1
    position = fields.put_varint(scratch, 0, len(headers))
    for name, field in headers:
        key = _header_key(name)
        needed = position + len(key) + 20
        if field is not None:
            needed += len(field)
        if needed > len(scratch):
            scratch.extend(bytes(needed))
        position = _write_field(scratch, position, key)
        position = _write_field(scratch, position, field)
    return position


def _header_key(name: str) -> bytes:
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape")


class RecordIterator:
    """The `count` records that fill `data` from `start` to `end` exactly, one after the other; damage is `CorruptRecords`.

    `append_time_ms`, where the broker stamped the batch, is every record's timestamp.
    """

    __slots__ = (
        "_base_offset",
        "_base_timestamp",
        "_count",
        "_data",
        "_end",
        "_index",
        "_is_append_time",
        "_position",
        "_raw",
        "_start",
    )

    def __init__(
        self, data: bytes, start: int, end: int, count: int, base_offset: int, base_timestamp: int, append_time_ms: int | None
    ) -> None:
        if start < 0 or end < start or end > len(data):
            raise CorruptRecords(f"records from byte {start} to {end} do not lie in {len(data)} bytes")
        if count < 0 or count > (end - start) // _RECORD_SIZE_MIN or (count == 0 and start != end):
            raise CorruptRecords(f"{end - start} bytes of records cannot be the {count} records that the batch says it has")
        self._data = data  # keeps alive what the pointer `_raw` of the compiled variant points to
        self._raw = data
        self._start = start
        self._position = start
        self._end = end
        self._index = 0
        self._count = count
        self._base_offset = base_offset
        self._is_append_time = append_time_ms is not None
        self._base_timestamp = base_timestamp if append_time_ms is None else append_time_ms

    def __iter__(self) -> "RecordIterator":
        return self

    def __length_hint__(self) -> int:
        return self._count - self._index

    def __next__(self) -> Record:
        if self._index >= self._count:
            raise StopIteration
        return self._read()

    def _read(self) -> Record:
        raw = self._raw
        began = self._position
        size, position = fields.varint(raw, began, self._end, 32)
        if position > self._end or size < _RECORD_SIZE_MIN - 1 or size > self._end - position:
            raise self._damaged("its length is damaged or reaches beyond the batch")
        limit = position + size
        timestamp_delta, position = fields.varint(raw, position + 1, limit, 64)
        offset_delta, position = fields.varint(raw, position, limit, 32)
        key_size, position = fields.varint(raw, position, limit, 32)
        if position > limit or key_size > limit - position:
            raise self._damaged("its timestamp, offset or key reaches beyond the record")
        record = Record.__new__(Record)
        record.offset = fields.wrap64(self._base_offset + offset_delta)
        record.timestamp = (
            self._base_timestamp if self._is_append_time else fields.wrap64(self._base_timestamp + timestamp_delta)
        )
        record.key = None
        if key_size >= 0:
            record.key = raw[position : position + key_size]
            position += key_size
        value_size, position = fields.varint(raw, position, limit, 32)
        if position > limit or value_size > limit - position:
            raise self._damaged("its value reaches beyond the record")
        record.value = None
        if value_size >= 0:
            record.value = raw[position : position + value_size]
            position += value_size
        record._headers = _NO_HEADERS
        if position != limit - 1 or raw[position] != 0:
            if not fields.are_headers(raw, position, limit):
                raise self._damaged("its headers do not end where the record does")
            record._headers = raw[position:limit]
        self._position = limit
        self._index += 1
        if self._index == self._count and limit != self._end:
            raise self._damaged(f"{self._end - limit} bytes are left over after the batch's last record")
        return record

    def _damaged(self, what: str) -> CorruptRecords:
        index = self._index
        position = self._position - self._start
        self._index = self._count  # an iterator that has failed has ended
        return CorruptRecords(f"record {index} of the batch, at byte {position} of its records: {what}", position)


def _decode_headers(data: bytes) -> Headers:
    """What `fields.are_headers` has found to be headers, taken apart."""
    raw = data
    end = len(data)
    count, position = fields.varint(raw, 0, end, 32)
    first = second = None
    more: list[tuple[str, bytes | None]] | None = None
    for index in range(count):
        size, position = fields.varint(raw, position, end, 32)
        key = _header_name(raw, position, size)
        size, position = fields.varint(raw, position + size, end, 32)
        value = None
        if size >= 0:
            value = raw[position : position + size]
            position += size
        if index == 0:
            first = (key, value)
        elif index == 1:
            second = (key, value)
        elif more is None:
            more = [(key, value)]
        else:
            more.append((key, value))
    # One or two headers are what records have; they need no list on their way into the tuple.
    if first is None:
        return ()
    if second is None:
        return (first,)
    return (first, second) if more is None else (first, second, *more)


def _header_name(raw: bytes, position: int, size: int) -> str:
    """The key of a header as text.

    The same few keys come with record after record. The compiled variant keeps one of them in each of 128 slots, chosen by its
    size, first and last byte, and returns it again instead of decoding it.
    """
    if not _COMPILED or size == 0 or size > _NAME_SIZE_MAX:
        return raw[position : position + size].decode("utf-8", "surrogateescape")
    slot = (size * 31 + raw[position] * 7 + raw[position + size - 1]) & _NAME_SLOT_MASK
    known = _NAMES[slot]
    kept = known[0]
    if len(kept) == size:
        other = kept
        same = 0
        while same < size and raw[position + same] == other[same]:
            same += 1
        if same == size:
            return known[1]
    name = raw[position : position + size].decode("utf-8", "surrogateescape")
    _NAMES[slot] = (raw[position : position + size], name)
    return name


# A compiled function is no plain function: that is how the variants know which of them they are.
_COMPILED = type(encode_rows).__name__ != "function"
