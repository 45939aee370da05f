"""Declared streams, tables and plain topics as DataFrames, batch and streaming; and rows of INSERT INTO as records.

A table is the latest value of each key. A batch finds it with two aggregations: the last record of a key in each partition, by
offset, then the latest of these, by timestamp; only topics that were given more partitions have several of them. Keys whose
last value is null are deleted, and records without a key belong to no table. A live query reads the changes of a table instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ottla.errors.texts import near_words
from ottla.spark.decoding.avro import avro_type
from ottla.spark.decoding.decode import decode
from ottla.spark.schema import SOURCE_COLUMNS
from ottla.spark.sql.declarations import AVRO, METADATA, RAW_COLUMNS, SCALARS, Declaration
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.statements import TABLE, Column

TEXT, RAW = "text", "raw"
RAW_KEY = "_ottla_key"
SOURCES = {"_topic": "topic", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp", "_headers": "headers"}
"""The metadata columns that are columns of the source."""
BAD = "bad"


def frame(
    spark: Any,
    declaration: Declaration,
    options: Mapping[str, str],
    *,
    is_live: bool,
    metadata: frozenset[str] = frozenset(),
    bad_records: str = "drop",
    observed_as: str | None = None,
    is_empty: bool = False,
) -> Any:
    """The rows of a declaration, with the metadata columns that are asked for.

    `observed_as` is the name under which Spark counts the bad records that are left out. With `is_empty` there are no
    records, and no topic is read: to analyse a statement.
    """
    is_state = declaration.kind == TABLE and not is_live
    schema = _read_schema(declaration, metadata, is_state, is_live)
    if is_empty:
        columns = ", ".join(f"CAST(NULL AS {each.dataType.simpleString()}) AS `{each.name}`" for each in schema.fields)
        df = spark.sql(f"SELECT {columns} WHERE false")
    else:
        df = (spark.readStream if is_live else spark.read).format("ottla").options(**options).schema(schema).load()
    if is_state:
        df = latest(df)
    if is_live and declaration.watermark is not None and declaration.timestamp is None:
        df = df.withWatermark("timestamp", declaration.watermark)
    if declaration.format in (TEXT, RAW):
        return _plain(df, declaration, metadata)
    df = df.withColumn(RAW_KEY, F.col("key")) if "key" in df.columns else df
    decoded = _decoded(df, declaration, "fail" if bad_records == "fail" and "_error" not in metadata else "keep")
    if "_error" in decoded.columns:
        if observed_as is not None:
            decoded = decoded.observe(observed_as, F.count_if(F.col("_error").isNotNull()).alias(BAD))
        if "_error" not in metadata:
            decoded = decoded.where(F.col("_error").isNull())
    made = decoded.select(*_columns(decoded, declaration), *_metadata(decoded, metadata))
    if is_live and declaration.watermark is not None and declaration.timestamp is not None:
        made = made.withWatermark(declaration.timestamp, declaration.watermark)
    return made


def latest(df: Any) -> Any:
    """The last record of each key, without the keys that are deleted."""
    names = [name for name in df.columns if name != "key"]
    row = F.struct(*names)
    each = df.where(F.col("key").isNotNull()).groupBy("key", "partition").agg(F.max_by(row, "offset").alias("_row"))
    found = each.groupBy("key").agg(F.max_by("_row", "_row.timestamp").alias("_row"))
    return found.select("key", *(F.col(f"_row.{name}").alias(name) for name in names)).where(F.col("value").isNotNull())


def _read_schema(declaration: Declaration, metadata: frozenset[str], is_state: bool, is_live: bool) -> StructType:
    """The columns of the source that are needed: each one more is fetched, copied and sent to Spark."""
    wanted = {"value"} | {SOURCES[name] for name in metadata & SOURCES.keys()}
    if is_state:
        wanted |= {"key", "partition", "offset", "timestamp"}
    if declaration.key is not None or "_key" in metadata:
        wanted.add("key")
    if declaration.format in (TEXT, RAW):
        wanted |= {each.name for each in declaration.columns}
    else:
        wanted |= {"topic", "partition", "offset"}  # to name a bad record
    if is_live and declaration.watermark is not None:
        wanted.add("timestamp")
    return StructType([StructField(name, kind) for name, kind in SOURCE_COLUMNS.items() if name in wanted])


def _plain(df: Any, declaration: Declaration, metadata: frozenset[str]) -> Any:
    """Records as they are; keys and values as text for a topic without a declaration."""
    is_text = declaration.format == TEXT
    columns = [
        F.make_valid_utf8(F.col(each.name).cast("string")).alias(each.name)
        if is_text and each.name in ("key", "value")
        else F.col(each.name)
        for each in declaration.columns
    ]
    kept = df.withColumn(RAW_KEY, F.col("key")).withColumn("_error", F.lit(None).cast("struct<reason: string>"))
    return kept.select(*columns, *_metadata(kept, metadata))


def _decoded(df: Any, declaration: Declaration, mode: str) -> Any:
    form = declaration.format
    schema = declaration.schema if form in AVRO else declaration.ddl if form == "json" else None
    key = declaration.key_format if declaration.key is not None and declaration.key_format.startswith("int") else None
    return decode(df, value=form, schema=schema, key=key, mode=mode, registry=declaration.registry)


def _columns(decoded: Any, declaration: Declaration) -> list[Any]:
    value_type = decoded.schema["value"].dataType
    if declaration.format in SCALARS or value_type.typeName() != "struct":
        name = declaration.value_columns[0].name if declaration.value_columns else "value"
        fields = {name: F.col("value")}
        types = {name: value_type.simpleString()}
    else:
        fields = {each.name: F.col("value")[each.name] for each in value_type.fields}
        types = {each.name: each.dataType.simpleString() for each in value_type.fields}
    if declaration.key is None:
        return [column.alias(name) for name, column in fields.items()]
    name = next((each for each in fields if each.lower() == declaration.key.lower()), declaration.key)
    declared = [each.type for each in declaration.columns if each.name == name]
    kind = types.get(name) or (declared[0] if declared else "string")
    key = F.col("key")
    if declaration.key_format in ("string", "uuid"):
        key = key.cast("string").try_cast(kind)
    elif declaration.key_format != "bytes" or kind != "binary":
        key = key.cast(kind)
    # The key identifies the record; the value may repeat it.
    column = F.coalesce(key, fields[name]) if name in fields else key
    order = [each.name for each in declaration.columns] or ([*fields] if name in fields else [name, *fields])
    return [(column if each == name else fields[each]).alias(each) for each in order]


def _metadata(df: Any, wanted: frozenset[str]) -> list[Any]:
    found = []
    for name in METADATA:
        if name not in wanted:
            continue
        source = F.col(RAW_KEY) if name == "_key" else F.col("_error.reason") if name == "_error" else F.col(SOURCES[name])
        found.append(source.alias(name))
    return found


WRITTEN_RAW = ("key", "value", "partition", "headers")
INTEGERS = {"int16": ("smallint", 2), "int32": ("int", 4), "int64": ("bigint", 8)}
"""Spark's type and the bytes of formats of one number."""


def records(df: Any, declaration: Declaration, columns: Sequence[str]) -> Any:
    """The rows as the columns of the sink. `columns` names those that INSERT INTO lists, if it does."""
    if declaration.format in AVRO:
        if declaration.registry is None:
            raise SqlError(
                f"{declaration.name} is {declaration.format} with a schema file, which is only read: take the schema from a "
                "registry to write it, or declare the topic as json"
            )
        declaration = _with_columns(declaration)
    if declaration.format in (RAW, TEXT):
        return _plain_of_writing(df, declaration, columns)
    named = _named(df, declaration, columns)
    values = [each for each in declaration.value_columns if each.name in named.columns]
    if declaration.format in SCALARS:
        value = _scalar(F.col(f"`{values[0].name}`"), declaration.format) if values else F.lit(None).cast("binary")
    else:
        value = F.struct(*(F.col(f"`{each.name}`") for each in values))
        if declaration.registry is None:
            value = F.to_json(value, {"ignoreNullFields": "false"})
    made = [value.alias("value")]
    if declaration.key is not None:
        if declaration.key not in named.columns:
            raise SqlError(f"INSERT INTO {declaration.name} leaves out {declaration.key}, the record's key: give it a value")
        made.insert(0, _scalar(F.col(f"`{declaration.key}`"), declaration.key_format).alias("key"))
    return named.select(*made)


def _with_columns(declaration: Declaration) -> Declaration:
    """The declaration with the columns of its Avro schema, and that of its key."""
    from pyspark.sql.pandas.types import from_arrow_type

    kind = from_arrow_type(avro_type(declaration.schema).made, prefer_timestamp_ntz=True)
    if kind.typeName() != "struct":
        raise SqlError(f"the schema of {declaration.name} is no record: only records are written")
    columns = [Column(each.name, each.dataType.simpleString()) for each in kind.fields]
    if declaration.key is not None and declaration.key not in [each.name for each in columns]:
        raise SqlError(f"key='{declaration.key}' is no field of the schema of {declaration.name}: values could not be written")
    return replace(declaration, columns=tuple(columns))


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


def _plain_of_writing(df: Any, declaration: Declaration, columns: Sequence[str]) -> Any:
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
