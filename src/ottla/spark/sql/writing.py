"""Rows of INSERT INTO as records: columns by name or place, cast to the declared types, in the declared formats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import functions as F

from ottla.errors.texts import near_words
from ottla.spark.sql.declarations import AVRO, RAW_COLUMNS, SCALARS, Declaration
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.frames import RAW, TEXT

WRITTEN_RAW = ("key", "value", "partition", "headers")
INTEGERS = {"int16": ("smallint", 2), "int32": ("int", 4), "int64": ("bigint", 8)}
"""Spark's type and the bytes of formats of one number."""


def records(df: Any, declaration: Declaration, columns: Sequence[str]) -> Any:
    """The rows as the columns of the sink. `columns` names those that INSERT INTO lists, if it does."""
    if declaration.format in AVRO:
        raise SqlError(f"{declaration.name} is {declaration.format}, which is only read: declare the topic as json to write it")
    if declaration.format in (RAW, TEXT):
        return _plain(df, declaration, columns)
    named = _named(df, declaration, columns)
    values = [each for each in declaration.value_columns if each.name in named.columns]
    if declaration.format in SCALARS:
        value = _scalar(F.col(f"`{values[0].name}`"), declaration.format) if values else F.lit(None).cast("binary")
    else:
        value = F.to_json(F.struct(*(F.col(f"`{each.name}`") for each in values)), {"ignoreNullFields": "false"})
    made = [value.alias("value")]
    if declaration.key is not None:
        if declaration.key not in named.columns:
            raise SqlError(f"INSERT INTO {declaration.name} leaves out {declaration.key}, the record's key: give it a value")
        made.insert(0, _scalar(F.col(f"`{declaration.key}`"), declaration.key_format).alias("key"))
    return named.select(*made)


def _named(df: Any, declaration: Declaration, columns: Sequence[str]) -> Any:
    """The rows with declared names and types."""
    declared = {each.name.lower(): each for each in declaration.columns}
    wanted = []
    for name in columns or [each.name for each in declaration.columns]:
        if name.lower() not in declared:
            near = near_words(name.lower(), declared)
            hint = (
                f"did you mean {declared[near[0]].name}?"
                if near
                else f"it has {', '.join(d.name for d in declaration.columns)}"
            )
            raise SqlError(f"{declaration.name} has no column {name}: {hint}")
        wanted.append(declared[name.lower()])
    if len(df.columns) != len(wanted):
        raise SqlError(
            f"INSERT INTO {declaration.name} has {len(df.columns)} values in a row for {len(wanted)} columns "
            f"({', '.join(each.name for each in wanted)}): give one for each, or name the columns"
        )
    placed = df.toDF(*(f"_{index}" for index in range(len(wanted))))
    return placed.select(*(F.col(f"_{index}").cast(each.type).alias(each.name) for index, each in enumerate(wanted)))


def _plain(df: Any, declaration: Declaration, columns: Sequence[str]) -> Any:
    names = [name.lower() for name in columns]
    if not names:
        given = [name.lower() for name in df.columns]
        if set(given) <= set(WRITTEN_RAW) and "value" in given:
            names = given
        elif len(given) <= 2:
            names = ["value"] if len(given) == 1 else ["key", "value"]
        else:
            raise SqlError(
                f"INSERT INTO {declaration.name} has {len(given)} columns, and records have {', '.join(WRITTEN_RAW)}: "
                f"name them as in INSERT INTO {declaration.name} (key, value) …, or declare a stream with a format"
            )
    for name in names:
        if name not in WRITTEN_RAW:
            raise SqlError(f"{name} cannot be written to a record of {declaration.name}: it has {', '.join(WRITTEN_RAW)}")
    if len(names) != len(df.columns):
        raise SqlError(
            f"INSERT INTO {declaration.name} has {len(df.columns)} values in a row for the columns {', '.join(names)}"
        )
    placed = df.toDF(*names)
    return placed.select(*(_raw(placed, name) for name in names))


def _raw(df: Any, name: str) -> Any:
    kind = df.schema[name].dataType.typeName()
    if name in ("key", "value"):
        return F.col(name) if kind == "binary" else F.col(name).cast("string").alias(name)
    return F.col(name).cast("int" if name == "partition" else RAW_COLUMNS["headers"]).alias(name)


def _scalar(column: Any, form: str) -> Any:
    """A value in one of the formats with one column."""
    if form in ("string", "uuid"):
        return column.cast("string")
    if form == "bytes":
        return column.cast("binary")
    if form in INTEGERS:
        kind, size = INTEGERS[form]
        # A key's column may be wider than its format. The first cast refuses a number that does not fit.
        digits = F.lpad(F.hex(_fitting(column, kind).cast("bigint")), 16, "0")
        return F.unhex(F.right(digits, F.lit(size * 2)))
    raise SqlError(f"the format {form} is only read: declare the topic as string, int16, int32, int64 or bytes to write it")


def _fitting(column: Any, kind: str) -> Any:
    """The number as `kind`; the query fails at one that does not fit, whatever spark.sql.ansi.enabled says."""
    made = column.try_cast(kind)
    problem = F.concat(
        column.cast("string"), F.lit(f" does not fit into {kind.upper()}, the format of the record's key or value")
    )
    return F.when(column.isNotNull() & made.isNull(), F.raise_error(problem).cast(kind)).otherwise(made)
