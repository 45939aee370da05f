"""`decode` turns the binary columns `key` and `value` of a topic into typed columns and finds the records that do not fit.

One DataFrame comes out, so a stream stays one query. What happens to a bad record is the caller's choice (`mode`):

    keep          the row stays, its `key` and `value` are null, and `_error` has the reason and the original bytes (default)
    drop          the row is left out
    fail          the task fails with an error that names topic, partition, offset and reason
    dead_letters  the task sends the record to a dead-letter topic and leaves the row out (`dead_letters=` is given)

Everything that Spark can evaluate in the JVM stays there; other formats are Arrow functions in Python workers.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pyspark.sql import functions as F

from ottla.spark.dead_letters import ERROR, described_position, letter_options, position_text, send_and_keep_rest
from ottla.spark.decoding.json_text import JsonDecoder
from ottla.spark.decoding.plain import BytesDecoder, NumberDecoder, TextDecoder, UuidDecoder
from ottla.spark.errors import SparkOptionError
from ottla.spark.pipelines import counts

NUMBERS = ("int16", "int32", "int64", "float32", "float64", "bool")
FORMATS = ("json", "avro", "confluent-avro", "str", *NUMBERS, "uuid", "bytes")
ALIASES = {
    "string": "str",
    "text": "str",
    "short": "int16",
    "int": "int32",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "binary": "bytes",
}


class Decoder(Protocol):
    """Decodes one column, in expressions of Spark. `stage` is evaluated once for each row; the others take its result."""

    def stage(self, source: Any) -> Any:
        """What both other functions need, computed from the bytes."""

    def value(self, staged: Any, source: Any) -> Any:
        """The decoded value of a good record."""

    def reason(self, staged: Any, source: Any) -> Any:
        """Why the record cannot be decoded, as a sentence; null for a good record."""

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """How a good record differs from the schema, with ", " between; null for not at all. None if the format cannot tell."""

    def fields(self, staged: Any) -> dict[str, Any]:
        """The columns of the value by name; none if it is not a struct."""


def decoder_for(
    name: str, side: str, schema: Any, registry: Callable[[int], Any] | None, options: Mapping[str, str]
) -> Decoder:
    """The decoder of a format; `side` is `key` or `value`, for the reasons it gives."""
    chosen = ALIASES.get(str(name).lower(), str(name).lower())
    argument = "schema" if side == "value" else "key_schema"
    if chosen not in FORMATS:
        close = difflib.get_close_matches(chosen, [*FORMATS, *ALIASES], 1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(FORMATS)}"
        raise SparkOptionError(f"{side}={name!r} is no format that decode knows; {hint}")
    if registry is not None and chosen != "confluent-avro":
        raise SparkOptionError(f"registry is for the format confluent-avro; {side} is {chosen}")
    if chosen in ("json", "avro", "confluent-avro"):
        if schema is None:
            if registry is not None:
                argument = f"{argument}= or {'subject' if side == 'value' else 'key_subject'}"
            example = "'order_id long, amount double'" if chosen == "json" else "the Avro schema as JSON text or dict"
            raise SparkOptionError(f"{side}={name!r} needs {argument}=, such as {example}")
        if chosen == "json":
            return JsonDecoder(side, schema, options)
        from ottla.spark.decoding.avro import AvroDecoder

        return AvroDecoder(side, schema, has_prefix=chosen == "confluent-avro", registry=registry)
    if schema is not None:
        raise SparkOptionError(f"{argument} is for the formats json and Avro; {side} is {chosen}")
    if chosen in NUMBERS:
        return NumberDecoder(side, chosen)

    if chosen == "bytes":
        return BytesDecoder(side)
    return UuidDecoder(side) if chosen == "uuid" else TextDecoder(side)


MODES = ("keep", "drop", "fail", "dead_letters")
STAGED, REASON = "_ottla_staged_", "_ottla_reason_"
KIND, PLACE, PRESENT, UNKNOWN = "_ottla_kind", "_ottla_place", "_ottla_present", "_ottla_unknown_fields"
KIND_GROUP, UNKNOWN_GROUP = "_ottla_kind_group", "_ottla_unknown_group"
REASONS_COUNTED = 16
SIDES = ("key", "value")


def decode(
    df: Any,
    *,
    value: str | None = None,
    schema: Any = None,
    key: str | None = None,
    key_schema: Any = None,
    mode: str | None = None,
    dead_letters: Mapping[str, str] | str | None = None,
    registry: Callable[[int], Any] | str | None = None,
    subject: str | None = None,
    key_subject: str | None = None,
    options: Mapping[str, str] | None = None,
    drift: bool = True,
) -> Any:
    """Decode the columns `value` and `key` of a DataFrame that was read from topics, batch or streaming.

    value, key: `json`, `avro`, `confluent-avro`, `str`, `int16`, `int32`, `int64`, `float32`, `float64`, `bool`, `uuid` or
        `bytes`; the formats of Kafka's serializers. A column that is not named stays binary. Nulls stay null.
    schema, key_schema: for `json`, a struct as DDL text or StructType; fields that are NOT NULL must be there. For Avro, the
        schema as JSON text or dict.
    mode: what becomes of records that cannot be decoded; see the module.
    dead_letters: the options of the sink for bad records: `topic`, `kafka.bootstrap.servers`, other settings with `kafka.`.
        In a pipeline the name of a topic is enough.
    registry: for `confluent-avro`, a function of a schema id that returns the writer's schema (JSON text or dict). It runs in
        the executors, once for each id and worker. A LookupError makes the record a bad one; other errors fail the task.
        Or the address of a schema registry, with `user:password@` if it wants a login.
    subject, key_subject: with the address of a registry: the subject whose newest schema has the columns, where `schema` or
        `key_schema` is not given.
    options: options of Spark's JSON reader, such as `timestampFormat`.
    drift: in a pipeline, whether values that differ from the schema (new fields, other types) or from before (fields that are
        null and never were) are counted and named. JSON is read a second time for it.

    In a pipeline, records and bad records are counted, and `ottla pipeline run` shows them.
    """
    if isinstance(dead_letters, str):
        dead_letters = letter_options(dead_letters, "decode")
    mode = _checked_mode(mode, dead_letters)
    formats = {"key": key, "value": value}
    wanted = {side: name for side, name in formats.items() if name is not None}
    if not wanted:
        raise SparkOptionError("decode does nothing: say the format of the value or the key, such as value='json'")
    schemas = {"key": key_schema, "value": schema}
    if isinstance(registry, str):
        from ottla.spark.registry.avro import RegistryLookup

        lookup = RegistryLookup(registry)
        for side, name in (("key", key_subject), ("value", subject)):
            if name is not None and schemas[side] is None:
                schemas[side] = lookup.newest(name)
        registry = lookup
    elif given := [word for word, each in (("subject", subject), ("key_subject", key_subject)) if each is not None]:
        raise SparkOptionError(f"{given[0]} is used with the address of a registry: registry='http://localhost:8081', say")
    kinds = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    decoders: dict[str, Decoder] = {}
    for side, name in wanted.items():
        if kinds.get(side) not in ("binary", "string"):
            there = kinds.get(side) or "not there"
            raise SparkOptionError(
                f"the column {side} is {there}: decode needs the bytes of records, as format('ottla') reads them"
            )
        decoders[side] = decoder_for(name, side, schemas[side], registry, options or {})
    for name in (ERROR, *(prefix + side for prefix in (STAGED, REASON) for side in wanted)):
        if name in kinds:
            raise SparkOptionError(f"the DataFrame has a column {name} already: rename it before decode, which makes one")
    return _applied(df, decoders, mode, dead_letters, drift)


def split_errors(decoded: Any) -> tuple[Any, Any]:
    """The good rows, without `_error`, and the bad rows of what `decode` returned in mode `keep`.

    For batches and for foreachBatch. In a stream these are two queries, each with a checkpoint: `dead_letters=` of `decode`, or
    `to_topics`, needs only one.
    """
    if ERROR not in decoded.columns:
        raise SparkOptionError(f"there is no column {ERROR}: split_errors takes what decode returns in mode keep")
    return decoded.where(F.col(ERROR).isNull()).drop(ERROR), decoded.where(F.col(ERROR).isNotNull())


def _checked_mode(mode: str | None, dead_letters: Mapping[str, str] | None) -> str:
    if mode is None:
        return "keep" if dead_letters is None else "dead_letters"
    if mode not in MODES:
        close = difflib.get_close_matches(str(mode), MODES, 1)
        hint = f"did you mean {close[0]}?" if close else f"use {', '.join(MODES)}"
        raise SparkOptionError(f"mode is {mode!r}, which decode does not know; {hint}")
    if (mode == "dead_letters") != (dead_letters is not None):
        missing = "needs" if dead_letters is None else "and"
        raise SparkOptionError(
            f"mode {mode} {missing} dead_letters={{'topic': …, 'kafka.bootstrap.servers': …}}: give both, or dead_letters alone"
        )
    return mode


def _applied(df: Any, decoders: Mapping[str, Decoder], mode: str, dead_letters: Mapping[str, str] | None, drift: bool) -> Any:
    # Each step is a projection of its own, so that a value is decoded once however often its parts are used.
    staged = df.withColumns({STAGED + side: each.stage(_bytes(df, side)) for side, each in decoders.items()})
    reasons = {side: each.reason(F.col(STAGED + side), _bytes(df, side)) for side, each in decoders.items()}
    # Spark would push a filter on a plain expression below the projection and decode every value twice. It leaves expressions
    # that depend on where they run; the number of a partition is never negative, so this one changes nothing.
    checked = staged.withColumns({REASON + side: F.when(F.spark_partition_id() >= 0, each) for side, each in reasons.items()})
    error = F.lit(None)
    for side in reversed(SIDES):
        if side in decoders:
            reason = F.col(REASON + side)
            error = F.when(reason.isNotNull(), _error(side, reason, df)).otherwise(error)
    checked = checked.withColumn(ERROR, error)
    if counts.current() is not None:
        checked = _counted(checked, decoders, mode, dead_letters, drift)
    if mode == "drop":
        checked = checked.where(F.col(ERROR).isNull())
    elif mode == "fail":
        message = F.concat(described_position(df), F.lit(" cannot be decoded: "), F.col(ERROR)["reason"])
        checked = checked.where(F.when(F.col(ERROR).isNull(), True).otherwise(F.raise_error(message).cast("boolean")))
    elif dead_letters is not None:
        checked = send_and_keep_rest(checked, dead_letters)
    is_good = F.col(ERROR).isNull()
    columns = [
        F.when(is_good, decoders[name].value(F.col(STAGED + name), F.col(name))).alias(name)
        if name in decoders
        else F.col(f"`{name}`")
        for name in df.columns
    ]
    return checked.select(*columns, *([F.col(ERROR)] if mode == "keep" else []))


def _tally(texts: str, group: str) -> Any:
    """How often each text of a column is there, as (item, count, example). Texts of one group are counted together.

    Spark sends what is counted so far to the tasks of a batch's next stage, and the sketch of approx_top_k cannot be sent.
    """
    items = []
    for number in range(REASONS_COUNTED):
        is_mine = F.col(group) == number
        newest = F.max(F.when(is_mine, F.struct(F.col(texts).alias("item"), F.col(PLACE).alias("example"))))
        items.append(_counted_item(newest["item"], F.count_if(is_mine), newest["example"]))
    return F.array(*items)


def _counted_item(item: Any, count: Any, example: Any) -> Any:
    return F.struct(item.alias("item"), count.alias("count"), example.alias("example"))


def _group(texts: Any) -> Any:
    return F.when(texts.isNotNull(), F.pmod(F.hash(texts), F.lit(REASONS_COUNTED)))


def _counted(df: Any, decoders: Mapping[str, Decoder], mode: str, dead_letters: Mapping[str, str] | None, drift: bool) -> Any:
    """Counts records, bad ones by reason, and those that differ from the schema, while they are read.

    Spark interprets the expressions of a count for each row. So what is costly is made a column first, which it compiles.
    """
    reason, is_bad = F.col(ERROR)["reason"], F.col(ERROR).isNotNull()
    # Reasons without the values in them, so that equal ones are counted together.
    kind = F.regexp_replace(reason, "(?s) is the (\\w+) [^;]*?: it must be ([^;]*)", " must be $2, not $1")
    kind = F.regexp_replace(kind, "(?s)^(the (?:key|value) [^:]*): .*", "$1")
    place = position_text(df)
    made = {KIND: kind, PLACE: F.lit(None).cast("string") if place is None else place}
    columns = [
        F.count(F.lit(1)).alias("rows"),
        F.count_if(is_bad).alias("bad"),
        F.max(F.lit(mode)).alias("mode"),
        _tally(KIND, KIND_GROUP).alias("reasons"),
        F.max(reason).alias("example"),
    ]
    if dead_letters is not None:
        columns.append(F.max(F.lit(dead_letters["topic"])).alias("topic"))
    groups = {KIND_GROUP: _group(F.col(KIND))}
    if drift and "value" in decoders:
        staged, source = F.col(STAGED + "value"), _bytes(df, "value")
        made[PRESENT] = ~is_bad & source.isNotNull()
        nulls = {name: F.col(PRESENT) & each.isNull() for name, each in decoders["value"].fields(staged).items()}
        if nulls:
            items = [
                _counted_item(F.lit(name), F.count_if(each), F.min(F.when(each, F.col(PLACE)))) for name, each in nulls.items()
            ]
            columns += [F.count_if(F.col(PRESENT)).alias("present"), F.array(*items).alias("nulls")]
        unknown = decoders["value"].unknown_fields(staged, source)
        if unknown is not None:
            made[UNKNOWN] = F.when(~is_bad, unknown)
            groups[UNKNOWN_GROUP] = _group(F.col(UNKNOWN))
            columns += [
                F.count_if(F.col(UNKNOWN).isNotNull()).alias("drifted"),
                _tally(UNKNOWN, UNKNOWN_GROUP).alias("fields"),
            ]
    observed = counts.observe(df.withColumns(made).withColumns(groups), counts.DECODE_PREFIX, columns)
    return observed.drop(*made, *groups)


def _bytes(df: Any, side: str) -> Any:
    return F.col(side).cast("binary") if side in df.columns else F.lit(None).cast("binary")


def _error(side: str, reason: Any, df: Any) -> Any:
    return F.struct(
        F.lit(side).alias("field"),
        reason.cast("string").alias("reason"),
        _bytes(df, "key").alias("key"),
        _bytes(df, "value").alias("value"),
    )
