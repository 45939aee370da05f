"""Column types between Spark and PostgreSQL, and Arrow columns as COPY's CSV. Pure.

Rows travel as CSV that Arrow writes and reads in bulk: an empty field is null, a quoted one is text, as COPY has it. Types that
CSV has no form for go as text: binaries as hex, timestamps and dates as numbers when they are read, nested types as JSON.
"""

from __future__ import annotations

import base64
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

COPY_FORMAT = "FORMAT csv, NULL ''"
SQL_TYPES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
NESTED = ("struct<", "array<", "map<", "variant")


def sql_type(spark_type: str) -> str:
    """The PostgreSQL type of a column that is created for a Spark type, by its simple name."""
    if spark_type.startswith("decimal("):
        return spark_type.replace("decimal", "numeric")
    if spark_type.startswith(NESTED):
        return "jsonb"
    return SQL_TYPES.get(spark_type, "text")


def csv_of(batch: Any) -> Any:
    """The rows of a record batch as CSV without a header, for COPY FROM."""
    import pyarrow as pa
    import pyarrow.csv as csv

    columns = [_as_text(column) for column in batch.columns]
    written = pa.BufferOutputStream()
    table = pa.table(columns, names=batch.schema.names)
    csv.write_csv(table, written, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return written.getvalue()


def _as_text(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if each is None else "\\x" + each.hex() for each in column.to_pylist()], pa.string())
    if pa.types.is_nested(kind):
        return pa.array([None if each is None else _json(each, kind) for each in column.to_pylist()], pa.string())
    if pa.types.is_decimal(kind):
        return column.cast(pa.string())
    return column


def _json(value: Any, kind: Any) -> str:
    return json.dumps(_plain(value, kind), ensure_ascii=False)


def _plain(value: Any, kind: Any) -> Any:
    """A value that JSON can hold; maps, which Arrow gives as pairs, become objects."""
    import pyarrow as pa

    if value is None:
        return None
    if pa.types.is_map(kind):
        return {str(_plain(name, kind.key_type)): _plain(each, kind.item_type) for name, each in value}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_plain(each, kind.value_type) for each in value]
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value
