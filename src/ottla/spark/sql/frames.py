"""Declared streams, tables and plain topics as DataFrames, batch and streaming.

A table is the latest value of each key. A batch finds it with two aggregations: the last record of a key in each partition, by
offset, then the latest of these, by timestamp; only topics that were given more partitions have several of them. Keys whose
last value is null are deleted, and records without a key belong to no table. A live query reads the changes of a table instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from ottla.spark.decoding.decode import decode
from ottla.spark.schema import SOURCE_COLUMNS
from ottla.spark.sql.declarations import AVRO, METADATA, SCALARS, Declaration
from ottla.spark.sql.statements import TABLE

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
    return decode(df, value=form, schema=schema, key=key, mode=mode)


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
