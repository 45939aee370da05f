# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""Records to bytes and bytes to records: the loop that runs once per record, in one source for two twins.

As plain Python this file is complete. Compiled with Cython, the types in `kernel.pxd` turn the same statements into C: a name
called `raw` or `out` is then a pointer, indexing it reads a byte and slicing it makes a `bytes`, which is what the plain twin
does with a `bytes` or `bytearray`. So that both twins mean the same:

- every length is compared with what is left of its record *before* the bytes are touched, because the compiled twin checks
  no bounds by itself;
- numbers that could leave 64 bits are wrapped by hand where C would wrap them (`_wrap64`), as Java does;
- nothing here may import `cython`, so that installs without it work.

Record: length varint | attributes int8 | timestampDelta varlong | offsetDelta varint | keyLength varint (negative: null) key |
valueLength varint value | header count varint, (keyLength varint, key, valueLength varint, value)... Varints are zigzag.
Header keys that are not UTF-8 survive reading and writing (surrogate escapes).
"""

from collections.abc import Iterable

from ottla.errors import CorruptRecords

RECORD_SIZE_MIN = 7
"""No record is shorter: its length, attributes, two deltas, two lengths and the header count take a byte each."""

_GROWTH_MIN = 4096


class Record:
    """One record of a log. Treat it as immutable: the compiled twin enforces that."""

    __slots__ = ("headers", "key", "offset", "timestamp", "value")

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def astuple(self) -> tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
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


def _wrap64(value: int) -> int:
    """`value` as 64 bits with a sign hold it. The compiled twin's numbers are so already."""
    if value > 0x7FFFFFFFFFFFFFFF or value < -0x8000000000000000:
        value = ((value + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000
    return value


def _read_varint(raw: bytes, position: int, end: int) -> tuple[int, int]:
    """The zigzag number of at most 32 bits at `position`, and where it ends; (0, -1) where there is none before `end`."""
    bits = 0
    shift = 0
    while position < end and shift < 35:
        byte = raw[position]
        position += 1
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:
            bits &= 0xFFFFFFFF
            value = bits >> 1
            if bits & 1:
                value = -value - 1
            return value, position
        shift += 7
    return 0, -1


def _read_varlong(raw: bytes, position: int, end: int) -> tuple[int, int]:
    """The zigzag number of at most 64 bits at `position`, and where it ends; (0, -1) where there is none before `end`."""
    bits = 0
    shift = 0
    while position < end and shift < 70:
        byte = raw[position]
        position += 1
        wide = byte & 0x7F
        bits |= wide << shift
        if byte < 0x80:
            bits &= 0xFFFFFFFFFFFFFFFF
            value = bits >> 1
            if bits & 1:
                value = -value - 1
            return value, position
        shift += 7
    return 0, -1


def _varlong_size(value: int) -> int:
    """How many bytes `value` takes as a zigzag number."""
    bits = value << 1
    if value < 0:
        bits = -bits - 1
    size = 1
    while bits > 0x7F:
        bits >>= 7
        size += 1
    return size


def _write_varlong(out: bytearray, position: int, value: int) -> int:
    """Write `value` as a zigzag number at `position`; returns where it ends."""
    bits = value << 1
    if value < 0:
        bits = -bits - 1
    while bits > 0x7F:
        out[position] = (bits & 0x7F) | 0x80
        bits >>= 7
        position += 1
    out[position] = bits
    return position + 1


def _damaged(what: str, index: int, position: int) -> CorruptRecords:
    return CorruptRecords(f"record {index} of the batch, at byte {position} of its records: {what}", position)


def encode_records(
    buffer: bytearray, position: int, records: Iterable[Record], base_offset: int, base_timestamp: int
) -> tuple[int, int, int, int]:
    """Write `records` into `buffer` from `position` on, growing it as needed.

    Returns (where they end, how many there were, the largest timestamp, the last offset); without records the last two are
    -1 and `base_offset` - 1.
    """
    count = 0
    max_timestamp = -1
    last_offset = base_offset - 1
    for record in records:
        timestamp = record.timestamp
        last_offset = record.offset
        position = _encode_record(
            buffer, position, timestamp - base_timestamp, last_offset - base_offset, record.key, record.value, record.headers
        )
        if count == 0 or timestamp > max_timestamp:
            max_timestamp = timestamp
        count += 1
    return position, count, max_timestamp, last_offset


def _encode_record(
    buffer: bytearray,
    position: int,
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
) -> int:
    key_size = -1 if key is None else len(key)
    value_size = -1 if value is None else len(value)
    header_count = len(headers)
    size = 1 + _varlong_size(timestamp_delta) + _varlong_size(offset_delta) + _varlong_size(key_size)
    size += _varlong_size(value_size) + _varlong_size(header_count)
    if key_size > 0:
        size += key_size
    if value_size > 0:
        size += value_size
    header_bytes: list[bytes | None] = []
    for header_key, header_value in headers:
        encoded = header_key.encode("utf-8", "surrogateescape")
        header_bytes.append(encoded)
        header_bytes.append(header_value)
        size += _varlong_size(len(encoded)) + len(encoded)
        size += 1 if header_value is None else _varlong_size(len(header_value)) + len(header_value)
    needed = position + size + 10
    if needed > len(buffer):
        buffer.extend(bytes(max(needed - len(buffer), len(buffer), _GROWTH_MIN)))
    out = buffer
    position = _write_varlong(out, position, size)
    out[position] = 0
    position = _write_varlong(out, position + 1, timestamp_delta)
    position = _write_varlong(out, position, offset_delta)
    for field in (key, value):
        position = _write_bytes(out, position, field)
    position = _write_varlong(out, position, header_count)
    for field in header_bytes:
        position = _write_bytes(out, position, field)
    return position


def _write_bytes(out: bytearray, position: int, field: bytes | None) -> int:
    if field is None:
        out[position] = 1
        return position + 1
    size = len(field)
    position = _write_varlong(out, position, size)
    raw = field
    out[position : position + size] = raw
    return position + size


def decode_records(
    data: bytes, start: int, end: int, count: int, base_offset: int, base_timestamp: int, append_time_ms: int | None
) -> list[Record]:
    """The `count` records that fill `data` from `start` to `end` exactly, or `CorruptRecords`.

    `append_time_ms`, where the broker stamped the batch, is every record's timestamp.
    """
    if start < 0 or end < start or end > len(data):
        raise CorruptRecords(f"records from byte {start} to {end} do not lie in {len(data)} bytes")
    if count < 0 or count > (end - start) // RECORD_SIZE_MIN:
        raise CorruptRecords(f"{end - start} bytes of records cannot hold the {count} records that the batch says it has")
    raw = data
    position = start
    records: list[Record] = []
    for index in range(count):
        began = position
        size, position = _read_varint(raw, position, end)
        if position < 0 or size < RECORD_SIZE_MIN - 1 or size > end - position:
            raise _damaged("its length is damaged or reaches beyond the batch", index, began)
        limit = position + size
        timestamp_delta, position = _read_varlong(raw, position + 1, limit)
        if position < 0:
            raise _damaged("its timestamp is damaged", index, began)
        offset_delta, position = _read_varint(raw, position, limit)
        if position < 0:
            raise _damaged("its offset is damaged", index, began)
        key_size, position = _read_varint(raw, position, limit)
        if position < 0 or key_size > limit - position:
            raise _damaged("its key reaches beyond the record", index, began)
        key = None
        if key_size >= 0:
            key = raw[position : position + key_size]
            position += key_size
        value_size, position = _read_varint(raw, position, limit)
        if position < 0 or value_size > limit - position:
            raise _damaged("its value reaches beyond the record", index, began)
        value = None
        if value_size >= 0:
            value = raw[position : position + value_size]
            position += value_size
        header_count, position = _read_varint(raw, position, limit)
        if position < 0 or header_count < 0 or header_count > (limit - position) // 2:
            raise _damaged("its header count is damaged", index, began)
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if header_count > 0:
            found, position = _decode_headers(raw, position, limit, header_count)
            if found is None:
                raise _damaged("a header reaches beyond the record", index, began)
            headers = found
        if position != limit:
            raise _damaged(f"{limit - position} bytes are left over after its headers", index, began)
        record = Record.__new__(Record)
        record.offset = _wrap64(base_offset + offset_delta)
        record.timestamp = _wrap64(base_timestamp + timestamp_delta) if append_time_ms is None else append_time_ms
        record.key = key
        record.value = value
        record.headers = headers
        records.append(record)
    if position != end:
        raise CorruptRecords(f"{end - position} bytes are left over after the batch's {count} records", position)
    return records


def _decode_headers(
    raw: bytes, position: int, limit: int, count: int
) -> tuple[tuple[tuple[str, bytes | None], ...] | None, int]:
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        key_size, position = _read_varint(raw, position, limit)
        if position < 0 or key_size < 0 or key_size > limit - position:
            return None, -1
        key = raw[position : position + key_size].decode("utf-8", "surrogateescape")
        value_size, position = _read_varint(raw, position + key_size, limit)
        if position < 0 or value_size > limit - position:
            return None, -1
        if value_size < 0:
            headers.append((key, None))
        else:
            headers.append((key, raw[position : position + value_size]))
            position += value_size
    return tuple(headers), position
