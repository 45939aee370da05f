# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The records of a batch as a consumer gets them, many with one call, in one source for two variants.

The rules are those of `kernel.py`, whose header explains the record's format: every length is compared with what is left
before the bytes are touched. `RecordDecoder` reads from a view where the response frame lies; only keys, values and headers
are copied out. It remembers where it stopped, so a batch may be taken in several calls.
"""

from collections.abc import Callable
from types import GenericAlias
from typing import Any, NoReturn

from ottla.errors import CorruptRecords
from ottla.records import kernel_fields as fields
from ottla.records import kernel_views as views
from ottla.records import layout
from ottla.records.checksum import crc32c
from ottla.records.kernel_fields import Buffer

_RECORD_SIZE_MIN = 7
_HEADER_SIZE = layout.HEADER_SIZE
_LOG_OVERHEAD = layout.LOG_OVERHEAD
_CRC_START = layout.CRC_START
_MAGIC = layout.MAGIC
_CODEC_MASK = layout.CODEC_MASK
_APPEND_TIME = layout.APPEND_TIME
_TRANSACTIONAL = layout.TRANSACTIONAL
_CONTROL = layout.CONTROL
_NO_HEADERS = b"\x00"

Headers = tuple[tuple[str, bytes | None], ...]
Deserializer = Callable[[str, Headers, bytes], Any]
"""(topic, headers, bytes) → the key or value. It is not called for null."""


class ConsumerRecord:
    """One record that a consumer got. Immutable; equal to another of the same place and content.

    `timestamp_type` is 0 where the producer set the timestamp and 1 where the broker did. `leader_epoch` is -1 where it is not
    known. Headers are kept as the bytes they are on the wire and decoded when read.
    """

    __slots__ = ("_headers", "key", "leader_epoch", "offset", "partition", "timestamp", "timestamp_type", "topic", "value")

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    leader_epoch: int
    key: Any
    value: Any
    _headers: bytes

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = -1,
        key: Any = None,
        value: Any = None,
        headers: Headers = (),
        timestamp_type: int = 0,
        leader_epoch: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.leader_epoch = leader_epoch
        self.key = key
        self.value = value
        self._headers = _encode_headers(headers) if headers else _NO_HEADERS

    @property
    def headers(self) -> Headers:
        """((key, value), ...), decoded with every call."""
        return () if self._headers is _NO_HEADERS else _decode_headers(self._headers)

    def header(self, key: str, default: Any = None) -> Any:
        """The value of the last header with this key, else `default`."""
        for name, value in reversed(self.headers):
            if name == key:
                return value
        return default

    @property
    def error(self) -> NoReturn:
        """Not there: for programs that come from confluent-kafka, where a message may be an error."""
        raise AttributeError("records have no `error` here: poll() raises errors. Key and value are attributes: record.value")

    def astuple(self) -> tuple[str, int, int, int, Any, Any, Headers, int, int]:
        """(topic, partition, offset, timestamp, key, value, headers, timestamp_type, leader_epoch): the constructor's order."""
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.key,
            self.value,
            self.headers,
            self.timestamp_type,
            self.leader_epoch,
        )

    def __class_getitem__(cls, types: Any) -> Any:
        """`ConsumerRecord[bytes, str]` in annotations: the types of key and value."""
        return GenericAlias(cls, types)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_RECORD_CLASS, self.astuple())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return self.astuple() == other.astuple()

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


_RECORD_CLASS = ConsumerRecord


class RecordDecoder:
    """Takes records out of batches in `data`; damage is `CorruptRecords`.

    `open_plain` opens a batch that needs nothing but decoding, where it lies. Other batches are the caller's, who checks and
    decompresses them and gives their records to `open_records`. `next_offset` is the offset after the last record that was
    read; records below it are passed over. After an exception of a deserializer, `failed` is the record as bytes, and
    `is_key_failed` says whether it was its key.
    """

    __slots__ = (
        "_base_offset",
        "_base_timestamp",
        "_count",
        "_data",
        "_end",
        "_index",
        "_is_append_time",
        "_partition",
        "_position",
        "_start",
        "_topic",
        "_view",
        "at",
        "batch_next_offset",
        "batch_size",
        "failed",
        "is_key_failed",
        "leader_epoch",
        "next_offset",
    )

    def __init__(self, data: Buffer, topic: str, partition: int, from_offset: int) -> None:
        self._view = memoryview(data)
        # Slices of bytes are bytes, as slices of a pointer are in the compiled variant.
        self._data = data if _COMPILED else bytes(data)
        self._topic = topic
        self._partition = partition
        self.next_offset = from_offset
        self.failed: ConsumerRecord | None = None
        self.is_key_failed = False
        self.leader_epoch = -1
        self.at = 0
        self.batch_size = 0
        self.batch_next_offset = from_offset
        self._start = self._position = self._end = 0
        self._index = self._count = 0
        self._base_offset = self._base_timestamp = 0
        self._is_append_time = False

    def open_plain(self, at: int, is_checked: bool, is_committed_only: bool) -> bool:
        """Open the batch at byte `at` if all of it can be handed out as it is. False: the general path has to look at it.

        That is so for batches that are compressed, control batches, damaged, cut short, or before `next_offset`; and for
        those of transactions with `is_committed_only`. `is_checked` asks for the CRC to be checked.
        """
        view = self._view
        size = len(view)
        if at < 0 or size - at < _HEADER_SIZE:
            return False
        raw = views.raw_of(self._data)
        base_offset, length, leader_epoch, magic, crc, attributes, last_delta, base_timestamp, max_timestamp, _, _, _, count = (
            fields.batch_header(raw, at)
        )
        if magic != _MAGIC or length < _HEADER_SIZE - _LOG_OVERHEAD or length > size - at - _LOG_OVERHEAD:
            return False
        if attributes & (_CODEC_MASK | _CONTROL) or (is_committed_only and attributes & _TRANSACTIONAL):
            return False
        next_offset = fields.wrap64(base_offset + last_delta + 1)
        if next_offset <= self.next_offset:
            return False
        start = at + _HEADER_SIZE
        stop = at + _LOG_OVERHEAD + length
        if count < 1 or count > (stop - start) // _RECORD_SIZE_MIN:
            return False
        if is_checked and crc32c(view[at + _CRC_START : stop]) != crc:
            return False
        self._start = self._position = start
        self._end = stop
        self._index = 0
        self._count = count
        self._base_offset = base_offset
        self._is_append_time = attributes & _APPEND_TIME != 0
        self._base_timestamp = max_timestamp if self._is_append_time else base_timestamp
        self.leader_epoch = leader_epoch
        self.batch_size = stop - at
        self.batch_next_offset = next_offset
        return True

    def open_records(self, count: int, base_offset: int, timestamp: int, is_append_time: bool, leader_epoch: int) -> None:
        """Read the `count` records that fill the data exactly. `timestamp` is the batch's base, or its append time."""
        size = len(self._view)
        if count < 0 or count > size // _RECORD_SIZE_MIN or (count == 0 and size != 0):
            raise CorruptRecords(f"{size} bytes of records cannot be the {count} records that the batch says it has")
        self._start = self._position = 0
        self._end = size
        self._index = 0
        self._count = count
        self._base_offset = base_offset
        self._base_timestamp = timestamp
        self._is_append_time = is_append_time
        self.leader_epoch = leader_epoch

    def batch_is(self, size: int, next_offset: int) -> None:
        """Note the whole size and the offset after the batch that `open_records` reads."""
        self.batch_size = size
        self.batch_next_offset = next_offset

    def go_on(self, at: int, offset: int) -> None:
        """Go on with the batch at byte `at`, and hand out no record below `offset`."""
        self.at = at
        self.next_offset = offset
        self._index = self._count = 0

    @property
    def left(self) -> int:
        """How many records were not read yet, those below the first offset included."""
        return self._count - self._index

    def take(
        self,
        records: list[ConsumerRecord],
        limit: int,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
    ) -> int:
        """Append up to `limit` records to `records`; returns how many.

        A record that is damaged, or that a deserializer refuses, ends the call before it. If it is the first, its exception is
        raised, and again with every further call; `next_offset` is then its offset, as far as that can be read.
        """
        if self._index >= self._count:
            return 0
        raw: Any = views.raw_of(self._data)
        end, count, index, position = self._end, self._count, self._index, self._position
        base_offset, base_timestamp, is_append_time = self._base_offset, self._base_timestamp, self._is_append_time
        partition, leader_epoch, next_offset = self._partition, self.leader_epoch, self.next_offset
        topic = self._topic
        is_plain = key_deserializer is None and value_deserializer is None
        taken = 0
        while taken < limit and index < count:
            size, at = fields.varint(raw, position, end, 32)
            if at > end or size < _RECORD_SIZE_MIN - 1 or size > end - at:
                break
            stop = at + size
            delta, at = fields.varint(raw, at + 1, stop, 64)
            offset_delta, at = fields.varint(raw, at, stop, 32)
            key_size, key_at = fields.varint(raw, at, stop, 32)
            if key_at > stop or key_size > stop - key_at:
                break
            at = key_at + key_size if key_size > 0 else key_at
            value_size, value_at = fields.varint(raw, at, stop, 32)
            if value_at > stop or value_size > stop - value_at:
                break
            at = value_at + value_size if value_size > 0 else value_at
            has_headers = at != stop - 1 or raw[at] != 0
            if has_headers and not fields.are_headers(raw, at, stop):
                break
            if index + 1 == count and stop != end:
                break
            offset = fields.wrap64(base_offset + offset_delta)
            if offset >= next_offset:
                record = ConsumerRecord.__new__(ConsumerRecord)
                record.topic = topic
                record.partition = partition
                record.offset = offset
                record.timestamp = base_timestamp if is_append_time else fields.wrap64(base_timestamp + delta)
                record.timestamp_type = 1 if is_append_time else 0
                record.leader_epoch = leader_epoch
                record.key = raw[key_at : key_at + key_size] if key_size >= 0 else None
                record.value = raw[value_at : value_at + value_size] if value_size >= 0 else None
                record._headers = raw[at:stop] if has_headers else _NO_HEADERS
                if is_plain:
                    fields.untrack(record)  # else a million records held cost the collector 50 ms at a time
                else:
                    try:
                        self._deserialize(record, key_deserializer, value_deserializer)
                    except BaseException:
                        if taken:
                            break
                        self.failed = record
                        self._index, self._position, self.next_offset = index, position, offset
                        raise
                records.append(record)
                next_offset = offset + 1
                taken += 1
            index += 1
            position = stop
        self._index, self._position, self.next_offset = index, position, next_offset
        if taken == 0 and index < count and limit > 0:
            raise CorruptRecords(
                f"record {index} of the batch, at byte {position - self._start} of its records: a length is damaged or reaches "
                "beyond the record, or bytes are left over after the last one",
                position - self._start,
            )
        return taken

    def take_plain(
        self,
        records: list[ConsumerRecord],
        limit: int,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        is_checked: bool,
        is_committed_only: bool,
    ) -> int:
        """As `take`, from batch after batch, beginning with the one at byte `at`, as long as `open_plain` opens them.

        Afterwards `at` is the batch that is open, or the one to open next.
        """
        taken = 0
        while taken < limit:
            if self._index >= self._count and not self.open_plain(self.at, is_checked, is_committed_only):
                break
            try:
                taken += self.take(records, limit - taken, key_deserializer, value_deserializer)
            except BaseException:
                if taken:
                    break  # what is good is handed out first; the next call raises
                raise
            if self._index >= self._count:
                self.at += self.batch_size
                self.next_offset = self.batch_next_offset
        return taken

    def _deserialize(
        self, record: ConsumerRecord, key_deserializer: Deserializer | None, value_deserializer: Deserializer | None
    ) -> None:
        """Replace key and value; if a deserializer fails, the record keeps its bytes."""
        headers = record.headers
        key, value = record.key, record.value
        if key_deserializer is not None and key is not None:
            self.is_key_failed = True
            key = key_deserializer(record.topic, headers, key)
        self.is_key_failed = False
        if value_deserializer is not None and value is not None:
            value = value_deserializer(record.topic, headers, value)
        record.key = key
        record.value = value


def _decode_headers(data: bytes) -> Headers:
    """What `fields.are_headers` has found to be headers, taken apart. Keys that are not UTF-8 get surrogate escapes."""
    raw = data
    end = len(data)
    found: list[tuple[str, bytes | None]] = []
    count, position = fields.varint(raw, 0, end, 32)
    for _ in range(count):
        size, position = fields.varint(raw, position, end, 32)
        key = raw[position : position + size].decode("utf-8", "surrogateescape")
        size, position = fields.varint(raw, position + size, end, 32)
        value = None
        if size >= 0:
            value = raw[position : position + size]
            position += size
        found.append((key, value))
    return tuple(found)


def _encode_headers(headers: Headers) -> bytes:
    """Header count and headers, as a record ends with them. Only records that a program makes itself need it."""
    out = bytearray(10)
    parts = [bytes(out[: fields.put_varint(out, 0, len(headers))])]
    for name, value in headers:
        for field in (name.encode("utf-8", "surrogateescape"), value):
            parts.append(bytes(out[: fields.put_varint(out, 0, -1 if field is None else len(field))]))
            if field is not None:
                parts.append(field)
    return b"".join(parts)


# A method of a compiled class is no plain function: that is how the variants know which of them they are.
_COMPILED = type(ConsumerRecord.header).__name__ != "function"
