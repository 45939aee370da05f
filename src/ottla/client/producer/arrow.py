"""Arrow tables, record batches and arrays as records to send: the columns' buffers are read where they lie.

Columns go by their names: value, key, headers, partition and timestamp; each may be missing, and null where the record has
none. `topic` and `offset`, which tables of a consumer have, are not read: they say where a record was. pyarrow is imported
with this module.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.client.producer.intake import Intake
from ottla.client.producer.many import ColumnSource, RowSource, Source
from ottla.errors import IllegalStateError
from ottla.records.kernels import BytesColumn, HeadersColumn, NumbersColumn, RecordColumns

try:
    import pyarrow
except ImportError:
    raise IllegalStateError("Arrow data needs pyarrow: pip install pyarrow") from None

NAMES = ("value", "key", "headers", "partition", "timestamp")
IGNORED = frozenset({"topic", "offset"})
_EMPTY = memoryview(b"")


def arrow_sources(topic: str, intake: Intake, values: Any, keys: Any) -> Iterator[Source]:
    """The rows of a table, record batch or reader, or of arrays of values and keys."""
    batches = _batches(values, keys)
    is_plain = intake.key_serializer is None and intake.value_serializer is None
    return _sources(topic, intake, batches, is_plain)


def arrow_rows(intake: Intake, values: Any, keys: Any) -> Iterator[tuple[Any, Any, Any, Any, Any]]:
    """The same rows as Python objects, one by one. Text is UTF-8 where there is no serializer."""
    for batch in _batches(values, keys):
        for partition, timestamp, key, value, headers in _rows(batch):
            key_sent = key.encode() if isinstance(key, str) and intake.key_serializer is None else key
            value_sent = value.encode() if isinstance(value, str) and intake.value_serializer is None else value
            yield partition, timestamp, key_sent, value_sent, headers


def _batches(values: Any, keys: Any) -> Iterator[Any]:
    """Record batches with checked columns. Wrong columns are raised here, where nothing is sent yet."""
    if not hasattr(values, "__arrow_c_stream__") and not hasattr(values, "__arrow_c_array__"):
        raise TypeError(f"the keys are Arrow's, and the values are {type(values).__name__}: give both as Arrow arrays")
    if isinstance(values, pyarrow.Array | pyarrow.ChunkedArray):
        return _of_arrays(values, keys)
    if keys is not None:
        raise ValueError("keys go into a column of the table that is called key, not into the argument keys")
    if isinstance(values, pyarrow.RecordBatch):
        reader = iter([values])
        schema = values.schema
    elif isinstance(values, pyarrow.Table):
        reader = iter(values.to_batches())
        schema = values.schema
    else:
        found = pyarrow.RecordBatchReader.from_stream(values) if hasattr(values, "__arrow_c_stream__") else None
        reader = iter([pyarrow.record_batch(values)]) if found is None else found
        schema = pyarrow.record_batch(values).schema if found is None else found.schema
    _check(schema)
    return reader


def _of_arrays(values: Any, keys: Any) -> Iterator[Any]:
    columns = {"value": values}
    if keys is not None:
        if not isinstance(keys, pyarrow.Array | pyarrow.ChunkedArray):
            raise TypeError(f"the values are Arrow's, and the keys are {type(keys).__name__}: give both as Arrow arrays")
        if len(keys) != len(values):
            raise ValueError(f"send_many got {len(values)} values and {len(keys)} keys: give a key, or null, for each value")
        columns["key"] = keys
    table = pyarrow.table(columns)
    _check(table.schema)
    return iter(table.to_batches())


def _check(schema: Any) -> None:
    names = schema.names
    unknown = sorted(set(names) - set(NAMES) - IGNORED)
    if unknown:
        raise ValueError(
            f"send_many knows no column {', '.join(unknown)}: records have {', '.join(NAMES)}. Select those columns, or rename"
        )
    if len(set(names)) != len(names):
        raise ValueError(f"columns are there twice: {', '.join(names)}")
    if not set(names) & {"value", "key"}:
        raise ValueError("send_many needs a column that is called value or key")
    is_number = pyarrow.types.is_integer
    for name in set(names) & {"partition", "timestamp"}:
        kind = schema.field(name).type
        is_time = name == "timestamp" and pyarrow.types.is_timestamp(kind)
        if not (is_number(kind) or is_time or pyarrow.types.is_null(kind)):
            wanted = "a timestamp, or integers: milliseconds since 1970" if name == "timestamp" else "integers"
            raise TypeError(f"the column {name} is {kind}: it must be {wanted}")


def _sources(topic: str, intake: Intake, batches: Iterator[Any], is_plain: bool) -> Iterator[Source]:
    done = 0
    for batch in batches:
        if is_plain:
            yield ColumnSource(record_columns(batch), done)
        else:
            yield RowSource(topic, intake, _rows(batch))
        done += batch.num_rows


def record_columns(batch: Any) -> RecordColumns:
    """The columns of a record batch for the kernel, over the same memory."""
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    nothing = pyarrow.nulls(0)
    headers = found.get("headers")
    return RecordColumns(
        batch.num_rows,
        _bytes_column("key", found.get("key", nothing)),
        _bytes_column("value", found.get("value", nothing)),
        None if headers is None or pyarrow.types.is_null(headers.type) else _headers_column(headers),
        _numbers_column(found.get("partition", nothing)),
        _numbers_column(_milliseconds(found.get("timestamp", nothing))),
    )


def _bytes_column(name: str, array: Any) -> BytesColumn:
    types = pyarrow.types
    kind = array.type
    if types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if types.is_null(kind):
        return BytesColumn(_EMPTY, _EMPTY, _EMPTY, 0, False)
    if types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        array = array.cast(pyarrow.large_binary())
    elif types.is_string_view(kind):
        array = array.cast(pyarrow.large_string())
    kind = array.type
    is_wide = types.is_large_binary(kind) or types.is_large_string(kind)
    if not (is_wide or types.is_binary(kind) or types.is_string(kind)):
        raise TypeError(f"the column {name} is {kind}: it must be binary or string, or set a serializer for it")
    bitmap, ends, data = array.buffers()
    if len(array) == 0:
        return BytesColumn(_EMPTY, _EMPTY, _EMPTY, 0, is_wide)
    return BytesColumn(_bitmap(array, bitmap), _whole(ends, 8 if is_wide else 4), _view(data), array.offset, is_wide)


def _headers_column(array: Any) -> HeadersColumn:
    types = pyarrow.types
    kind = array.type
    if types.is_map(kind):
        keys, values = array.keys, array.items
        is_wide = False
    elif types.is_list(kind) or types.is_large_list(kind):
        is_wide = types.is_large_list(kind)
        if not types.is_struct(kind.value_type) or {"key", "value"} != {field.name for field in kind.value_type}:
            raise TypeError(f"the column headers is {kind}: its lists must hold structs of key and value")
        pairs = dict(zip([field.name for field in kind.value_type], array.values.flatten(), strict=True))
        keys, values = pairs["key"], pairs["value"]
    else:
        raise TypeError(f"the column headers is {kind}: it must be a list of structs of key and value, or a map")
    bitmap, ends = array.buffers()[:2]
    lists = BytesColumn(_bitmap(array, bitmap), _whole(ends, 8 if is_wide else 4), _EMPTY, array.offset, is_wide, len(keys))
    return HeadersColumn(lists, _bytes_column("headers.key", keys), _bytes_column("headers.value", values))


def _milliseconds(array: Any) -> Any:
    kind = array.type
    if not pyarrow.types.is_timestamp(kind):
        return array
    return array.cast(pyarrow.timestamp("ms", tz=kind.tz), safe=False).view(pyarrow.int64())


def _numbers_column(array: Any) -> NumbersColumn:
    if len(array) == 0 or pyarrow.types.is_null(array.type):
        return NumbersColumn(_EMPTY, _EMPTY, 0)
    array = array.cast(pyarrow.int64())
    bitmap, numbers = array.buffers()
    return NumbersColumn(_bitmap(array, bitmap), _whole(numbers, 8), array.offset)


def _bitmap(array: Any, buffer: Any) -> memoryview:
    return _view(buffer) if array.null_count else _EMPTY


def _view(buffer: Any) -> memoryview:
    return _EMPTY if buffer is None else memoryview(buffer)


def _whole(buffer: Any, size: int) -> memoryview:
    """The buffer without padding that is no whole number."""
    view = _view(buffer).cast("B")
    return view[: len(view) // size * size]


def _rows(batch: Any) -> list[tuple[Any, Any, Any, Any, Any]]:
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    nothing = [None] * batch.num_rows
    timestamps = _milliseconds(found["timestamp"]).to_pylist() if "timestamp" in found else nothing
    columns = [found[name].to_pylist() if name in found else nothing for name in ("partition", "key", "value", "headers")]
    headers = [None if each is None else [_pair(one) for one in each] for each in columns[3]]
    return list(zip(columns[0], timestamps, columns[1], columns[2], headers, strict=True))


def _pair(header: Any) -> tuple[str, bytes | None]:
    key, value = (header["key"], header["value"]) if isinstance(header, dict) else header
    return key, value.encode() if isinstance(value, str) else value
