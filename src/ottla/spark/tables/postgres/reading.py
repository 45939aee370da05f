"""Reading rows of PostgreSQL: COPY's CSV to Arrow record batches, in bulk.

COPY writes null as an empty field and an empty text in quotes, which Arrow's reader tells apart. Dates and timestamps come as
numbers since 1970, binaries as hex. Infinite dates and timestamps become the last and the first ones of the years 1 to 9999, as
in Spark's JDBC source. A decimal has neither infinity nor NaN: reading one fails, and the error names the column.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ottla.spark.errors import SourceError
from ottla.spark.tables.postgres.connecting import connect, psycopg, quoted

CHUNK_BYTES = 4 << 20
DAYS = (
    "(CASE {0} WHEN 'infinity' THEN date '9999-12-31' WHEN '-infinity' THEN date '0001-01-01' ELSE {0} END - date '1970-01-01')"
)
MICROS = (
    "(extract(epoch from CASE {{0}} WHEN 'infinity' THEN {0} '9999-12-31 23:59:59.999' WHEN '-infinity' THEN {0} '0001-01-01' "
    "ELSE {{0}} END) * 1000000)::bigint"
)


class Column(NamedTuple):
    """One column of a query."""

    name: str
    spark: str
    """Spark's type, as DDL."""
    expression: str
    """What COPY selects for it, with `{}` or `{0}` for the column."""
    read: str
    """Arrow's type of the CSV field, by pyarrow's name for it."""


KINDS: dict[str, tuple[str, str, str]] = {
    "int2": ("smallint", "{}", "int16"),
    "int4": ("int", "{}", "int32"),
    "int8": ("bigint", "{}", "int64"),
    "oid": ("bigint", "{}", "int64"),
    "float4": ("float", "{}", "float32"),
    "float8": ("double", "{}", "float64"),
    "bool": ("boolean", "{}", "bool_"),
    "date": ("date", DAYS, "int32"),
    "timestamp": ("timestamp_ntz", MICROS.format("timestamp"), "int64"),
    "timestamptz": ("timestamp", MICROS.format("timestamptz"), "int64"),
    "bytea": ("binary", "encode({}, 'hex')", "string"),
}
"""Spark's type, the expression and Arrow's type, by PostgreSQL's name. Everything else is read as text."""


def describe(url: str, query: str) -> list[Column]:
    """The columns of a query."""
    with connect(url) as connection:
        found = connection.execute(f"SELECT * FROM ({query}) AS described LIMIT 0").description
        return [_column(each.name, _type_name(connection, each.type_code), each.precision, each.scale) for each in found]


def read_rows(url: str, query: str, columns: Sequence[Column], condition: str = "") -> Iterator[Any]:
    """The rows of a query as record batches with the types that Spark expects."""
    import pyarrow as pa
    import pyarrow.csv as csv

    selected = ", ".join(each.expression.format(quoted(each.name)) for each in columns) or "1"
    where = f" WHERE {condition}" if condition else ""
    statement = f"COPY (SELECT {selected} FROM ({query}) AS wanted{where}) TO STDOUT (FORMAT csv, NULL '')"
    options = csv.ConvertOptions(
        column_types={each.name: _read_type(each) for each in columns},
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["t"],
        false_values=["f"],
    )
    # An empty line is a row too: a null in the only column.
    parsing = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    for chunk in _chunks(url, statement, columns):
        # One block: Arrow refuses a row that is larger than its block.
        names = [each.name for each in columns]
        reading = csv.ReadOptions(column_names=names, use_threads=False, block_size=len(chunk) + 1)
        with _explained(columns):
            table = csv.read_csv(pa.BufferReader(chunk), read_options=reading, parse_options=parsing, convert_options=options)
        arrays = [_finished(table.column(each.name), each) for each in columns]
        made = pa.table(arrays, names=[each.name for each in columns])
        yield from made.combine_chunks().to_batches()


@contextmanager
def _explained(columns: Sequence[Column]) -> Iterator[None]:
    """Errors about a value, of PostgreSQL or Arrow, as one sentence that names the column and says what to do."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as problem:
        where = re.search(r"In CSV column #(\d+): (?:Row #\d+: )?(.+)", str(problem))
        if where is None:
            raise
        column = columns[int(where[1])]
        raise SourceError(
            f"column {column.name} has a value that {column.spark} does not have: {where[2]}; {_REMEDY}"
        ) from None
    except psycopg().DataError as problem:
        why = problem.diag.message_primary or str(problem).strip().splitlines()[0]
        detail = f" ({problem.diag.message_detail})" if problem.diag.message_detail else ""
        numbers = ", ".join(each.name for each in columns if each.read == "decimal")
        at = f"one of the numeric columns {numbers}" if numbers and "numeric" in why else "a column"
        raise SourceError(f"{at} has a value that Spark's type does not have: {why}{detail}; {_REMEDY}") from None


_REMEDY = "use the option query and select something else for it, such as nullif(column, 'NaN') or column::float8"


def _chunks(url: str, statement: str, columns: Sequence[Column]) -> Iterator[bytes]:
    """Whole rows, some megabytes at a time: COPY hands them over row by row."""
    rows: list[bytes] = []
    size = 0
    with _explained(columns), connect(url) as connection, connection.cursor().copy(statement) as copy:
        for row in copy:
            rows.append(bytes(row))
            size += len(rows[-1])
            if size >= CHUNK_BYTES:
                yield b"".join(rows)
                rows, size = [], 0
    if rows:
        yield b"".join(rows)


def _type_name(connection: Any, oid: int) -> str:
    found = connection.execute("SELECT typname FROM pg_type WHERE oid = %s", (oid,)).fetchone()
    return str(found[0])


def _column(name: str, kind: str, precision: int | None, scale: int | None) -> Column:
    if kind == "numeric":
        digits, after = _decimal_size(precision, scale or 0)
        # PostgreSQL rounds, and refuses what is too large. Arrow refuses what it would have to round, and wraps around.
        return Column(name, f"decimal({digits},{after})", f"{{}}::numeric({digits},{after})", "decimal")
    spark, expression, read = KINDS.get(kind, ("string", "{}::text", "string"))
    return Column(name, spark, expression, read)


def _decimal_size(precision: int | None, scale: int) -> tuple[int, int]:
    """Digits, and how many of them come after the point, as Spark allows them: as in Spark's JDBC source, 38 and 18 else."""
    if not precision:
        return 38, 18
    # PostgreSQL has numbers whose last digits are zeros (scale < 0), and such with zeros after the point (scale > precision).
    digits = max(precision, scale) if scale >= 0 else precision - scale
    return (digits, max(scale, 0)) if digits <= 38 else (38, 18)


def _read_type(column: Column) -> Any:
    import pyarrow as pa

    return _decimal_type(column) if column.read == "decimal" else getattr(pa, column.read)()


def _decimal_type(column: Column) -> Any:
    import pyarrow as pa

    digits, after = column.spark[len("decimal(") : -1].split(",")
    return pa.decimal128(int(digits), int(after))


def _finished(array: Any, column: Column) -> Any:
    import pyarrow as pa

    if column.spark == "date":
        return array.cast(pa.date32())
    if column.spark in ("timestamp", "timestamp_ntz"):
        return array.cast(pa.timestamp("us", tz="UTC" if column.spark == "timestamp" else None))
    if column.spark == "binary":
        return pa.chunked_array([[None if each is None else bytes.fromhex(each) for each in array.to_pylist()]], pa.binary())
    return array
