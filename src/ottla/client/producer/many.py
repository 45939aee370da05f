"""What `send_many` is given, in the form that both faces send: a `Source` of records that the kernel appends.

`append_all` asks the sources to append; where the kernel stops, the face sends that one record by the general path and goes on
after it. Sources belong to the caller's thread or task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Protocol

from ottla.client.producer.deliveries import Deliveries
from ottla.client.producer.intake import Intake, Record, checked_partition, checked_timestamp, pack
from ottla.records.kernels import NO_HEADERS, Places, RecordColumns, TopicBatches, append_list

CHUNK = 10_000
"""How many records `send_many` takes from an iterable at a time."""

_ONE_ENTRY_EACH = "give one entry for each record, a list of (key, value) or None; for the same headers on all, [headers] * n"

Ready = tuple[int, int, bytes | None, bytes | None, bytes]
"""(partition, timestamp, key, value, packed headers) of one record."""


class ArrowStream(Protocol):
    """Data that follows Arrow's protocol for streams: tables, readers, chunked arrays, and those of other libraries."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowBatch(Protocol):
    """Data that follows Arrow's protocol for arrays: record batches and arrays."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


ArrowData = ArrowStream | ArrowBatch


class Source(Protocol):
    """Records of one `send_many`."""

    count: int

    def append(self, batches: TopicBatches, partition: int, timestamp: int, start: int, places: Places) -> int:
        """Add records from `start` on to open batches; returns the first that was not added."""
        ...

    def record(self, number: int, partition: int, timestamp: int) -> Ready:
        """One record; `partition` and `timestamp` are for records that have none."""
        ...

    def given(self, number: int) -> tuple[Any, Any]:
        """A record's key and value before their serializers, for partitioners of the user's."""
        ...

    def stamps(self, start: int, timestamp: int) -> int | Callable[[int], int]:
        """The timestamps of the records from `start` on: one for all, or a function of their number from there."""
        ...


class ListSource:
    """Values, keys and headers in lists."""

    def __init__(
        self, topic: str, intake: Intake, values: list[Any], keys: list[Any] | None, headers: list[Any] | None = None
    ) -> None:
        self.count = len(values)
        self._headers = headers
        self._packed = None if headers is None else _packed(headers)
        self._topic = topic
        self._intake = intake
        self._values = values
        self._keys = keys
        self._ready_values = values
        self._ready_keys = keys
        if intake.value_serializer is not None:
            self._ready_values = [intake.value_bytes(topic, self._given_headers(n), value) for n, value in enumerate(values)]
        if keys is not None and intake.key_serializer is not None:
            self._ready_keys = [intake.key_bytes(topic, self._given_headers(n), key) for n, key in enumerate(keys)]

    def _given_headers(self, number: int) -> Any:
        return () if self._headers is None else self._headers[number] or ()

    def append(self, batches: TopicBatches, partition: int, timestamp: int, start: int, places: Places) -> int:
        return append_list(batches, partition, timestamp, self._ready_values, self._ready_keys, self._packed, start, places)

    def record(self, number: int, partition: int, timestamp: int) -> Ready:
        value = self._ready_values[number]
        key = None if self._ready_keys is None else self._ready_keys[number]
        if self._intake.value_serializer is None:
            value = self._intake.value_bytes(self._topic, (), value)
        if self._intake.key_serializer is None:
            key = self._intake.key_bytes(self._topic, (), key)
        return partition, timestamp, key, value, NO_HEADERS if self._packed is None else self._packed[number]

    def given(self, number: int) -> tuple[Any, Any]:
        return None if self._keys is None else self._keys[number], self._values[number]

    def stamps(self, start: int, timestamp: int) -> int | Callable[[int], int]:
        return timestamp


class ColumnSource:
    """Rows of Arrow columns whose bytes are sent as they are."""

    def __init__(self, columns: RecordColumns, first_row: int) -> None:
        self.count = columns.rows
        self._columns = columns
        self._first_row = first_row

    def append(self, batches: TopicBatches, partition: int, timestamp: int, start: int, places: Places) -> int:
        return self._columns.append(batches, partition, timestamp, start, places)

    def record(self, number: int, partition: int, timestamp: int) -> Ready:
        try:
            return self._columns.record(number, partition, timestamp)
        except ValueError as problem:
            raise ValueError(f"row {self._first_row + number}: {problem}. The rows before it are sent") from None

    def given(self, number: int) -> tuple[Any, Any]:
        record = self._columns.record(number, 0, 0)
        return record[2], record[3]

    def stamps(self, start: int, timestamp: int) -> int | Callable[[int], int]:
        timestamps = self._columns.timestamps
        return lambda number: timestamps.get(start + number, timestamp)


class RowSource:
    """Rows as Python objects, for serializers: (partition, timestamp, key, value, headers), None where the row has none."""

    def __init__(self, topic: str, intake: Intake, rows: list[tuple[Any, Any, Any, Any, Any]]) -> None:
        self.count = len(rows)
        self._topic = topic
        self._intake = intake
        self._rows = rows

    def append(self, batches: TopicBatches, partition: int, timestamp: int, start: int, places: Places) -> int:
        return start

    def record(self, number: int, partition: int, timestamp: int) -> Ready:
        own_partition, own_timestamp, key, value, headers = self._rows[number]
        return (
            partition if own_partition is None else checked_partition(own_partition, self._topic),
            timestamp if own_timestamp is None else checked_timestamp(own_timestamp),
            self._intake.key_bytes(self._topic, headers or (), key),
            self._intake.value_bytes(self._topic, headers or (), value),
            pack(headers or ()),
        )

    def given(self, number: int) -> tuple[Any, Any]:
        row = self._rows[number]
        return row[2], row[3]

    def stamps(self, start: int, timestamp: int) -> int | Callable[[int], int]:
        return lambda number: timestamp if self._rows[start + number][1] is None else self._rows[start + number][1]


def sources(topic: str, intake: Intake, values: Any, keys: Any, headers: Any = None) -> Iterator[Source]:
    """The records that `send_many` was given, a part at a time; what is wrong with all of them is raised first."""
    _check_given(values, keys, headers)
    if is_arrow(values) or is_arrow(keys):
        from ottla.client.producer.arrow import arrow_sources  # late: it imports pyarrow

        return arrow_sources(topic, intake, values, keys)
    if intake.is_plain() and all(isinstance(given, list | tuple) for given in (values, keys, headers) if given is not None):
        return iter([ListSource(topic, intake, _as_list(values), _as_list(keys), _as_list(headers))])
    return _chunks(topic, intake, values, keys, headers)


def _check_given(values: Any, keys: Any, headers: Any) -> None:
    """Raise what is wrong with the arguments of `send_many` as such."""
    if isinstance(headers, str | bytes | dict):
        raise TypeError(f"headers is one {type(headers).__name__}: {_ONE_ENTRY_EACH}")
    if not isinstance(values, Iterable) and not is_arrow(values):
        raise TypeError(f"send_many takes an iterable of values or Arrow data, not {values!r}: give a list, or use send")
    if is_arrow(values) or is_arrow(keys):
        if headers is not None:
            raise ValueError("headers of Arrow data are a column of a table that is called headers, not the argument headers")
    elif all(isinstance(given, list | tuple) for given in (values, keys, headers) if given is not None):
        for name, given in (("keys", keys), ("headers", headers)):
            if given is not None and len(given) != len(values):
                raise ValueError(
                    f"send_many got {len(values)} values and {len(given)} {name}: give one, or None, for each value"
                )


Row = tuple[Any, Any, Any, Any, Any]
"""(partition, timestamp, key, value, headers), None where the row has none."""


def rows(intake: Intake, values: Any, keys: Any, headers: Any = None) -> Iterator[Row]:
    """The records that `send_many` was given, one by one, as they are before serializers."""
    _check_given(values, keys, headers)
    if is_arrow(values) or is_arrow(keys):
        from ottla.client.producer.arrow import arrow_rows  # late: it imports pyarrow

        yield from arrow_rows(intake, values, keys)
        return
    for chunk, key_chunk, headers_chunk in _lists(values, keys, headers):
        for number, value in enumerate(chunk):
            key = None if key_chunk is None else key_chunk[number]
            yield None, None, key, value, None if headers_chunk is None else headers_chunk[number]


Waiting = tuple[int, Record, tuple[Any, Any]]
"""Partition (-1: any), record, and its key and value before their serializers."""


def append_all(
    batches: Callable[[], TopicBatches | None],
    records: Iterable[Source],
    default: tuple[int, Callable[[], int]],
    deliveries: Deliveries,
    check: Callable[[], None],
) -> Iterator[Waiting]:
    """Add records to open batches with the kernel. Yields each record that needs the general path.

    The caller sends that record and adds its place to `deliveries` before it goes on. `batches` returns the topic's, None if
    the kernel cannot add to them; `default` is the partition and the time for records that have none; `check` raises if
    nothing can be sent any more.
    """
    partition, stamp_now = default
    places = deliveries.places
    for source in records:
        index = 0
        while index < source.count:
            check()
            stamp = stamp_now()
            deliveries.stamps.add(places.count, source.stamps(index, stamp))
            found = batches()
            if found is not None:
                index = source.append(found, partition, stamp, index, places)
            if index < source.count:  # the next one needs a new batch, or is no bytes
                number, own_stamp, key, value, headers = source.record(index, partition, stamp)
                yield number, (own_stamp, key, value, headers), source.given(index)
                index += 1


def is_arrow(values: Any) -> bool:
    """Whether these are Arrow's: a table, record batch, reader, array or anything with Arrow's stream or array interface."""
    return hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")


def _as_list(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given


def _packed(headers: list[Any]) -> list[bytes]:
    """The headers of each record as bytes. An object that several records in a row share is packed once."""
    packed = []
    last, last_packed = None, NO_HEADERS
    for each in headers:
        if each is not last:
            if isinstance(each, str | bytes) or (isinstance(each, tuple) and each and isinstance(each[0], str)):
                raise TypeError(f"the headers of a record are {each!r}: {_ONE_ENTRY_EACH}")
            last, last_packed = each, pack(each or ())
        packed.append(last_packed)
    return packed


def _chunks(
    topic: str, intake: Intake, values: Iterable[Any], keys: Iterable[Any] | None, headers: Iterable[Any] | None
) -> Iterator[Source]:
    for chunk, key_chunk, headers_chunk in _lists(values, keys, headers):
        yield ListSource(topic, intake, chunk, key_chunk, headers_chunk)


def _lists(
    values: Iterable[Any], keys: Iterable[Any] | None, headers: Iterable[Any] | None
) -> Iterator[tuple[list[Any], list[Any] | None, list[Any] | None]]:
    """Values, keys and headers, a part at a time."""
    if isinstance(values, str | bytes | bytearray):
        raise TypeError(f"send_many takes an iterable of values, not one {type(values).__name__}: give a list, or use send")
    each_value = iter(values)
    each_key = None if keys is None else iter(keys)
    each_headers = None if headers is None else iter(headers)
    done = 0
    while chunk := list(islice(each_value, CHUNK)):
        key_chunk = _beside(chunk, each_key, "keys", done)
        headers_chunk = _beside(chunk, each_headers, "headers", done)
        yield chunk, key_chunk, headers_chunk
        done += len(chunk)


def _beside(values: list[Any], others: Iterator[Any] | None, name: str, done: int) -> list[Any] | None:
    """As many keys or headers as there are values."""
    if others is None:
        return None
    chunk = list(islice(others, len(values)))
    if len(chunk) != len(values):
        raise ValueError(f"send_many got fewer {name} than values: {done + len(chunk)} records have both")
    return chunk
