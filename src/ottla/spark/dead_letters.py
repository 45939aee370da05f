"""Dead letters: records that could not be decoded, and rows that do not meet an expectation.

They have the original key, value and headers, and more headers that say why and where:

| header | text |
|---|---|
| `ottla.error.reason` | why the record was refused |
| `ottla.error.field` | `key` or `value`, of a record that could not be decoded |
| `ottla.error.topic`, `.partition`, `.offset` | where the record is |
| `ottla.error.timestamp` | its timestamp, in milliseconds since 1970 |

Sending is at least once: a task that is tried again sends its dead letters again. Position headers identify repeats.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F

from ottla.errors import KafkaError
from ottla.spark.decoding.plain import arrow_function
from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.schema import HEADERS
from ottla.spark.sink.options import sink_options

ERROR = "_error"
PREFIX = "ottla.error."
POSITION = ("topic", "partition", "offset", "timestamp")
KEPT = "_ottla_kept"
BYTES = ("binary", "string")
DEFAULT_TOPIC = "spark.ottla.deadLetters"
"""The key of a pipeline's configuration with the topic for dead letters whose expectation names none."""


def dead_letters(bad: Any) -> Any:
    """The bad rows of `decode` as rows for the sink: the original key and value, and headers with reason and position."""
    _need_error(bad, "dead_letters")
    return bad.where(F.col(ERROR).isNotNull()).select(*_letter(bad))


def to_topics(decoded: Any, *, topic: str, dead_letter_topic: str, value: Any = None, key: Any = None) -> Any:
    """All rows of `decode` in one DataFrame for the sink: good rows to `topic`, bad ones to `dead_letter_topic`.

    One query writes both, with the guarantees of the sink. `value` and `key` are the expressions that good rows are written
    with; by default the decoded columns, structs as JSON.
    """
    _need_error(decoded, "to_topics")
    is_bad = F.col(ERROR).isNotNull()
    letter = {"key": F.col(ERROR)["key"], "value": F.col(ERROR)["value"]}
    given = {"key": key, "value": value}
    sides = {
        side: F.when(is_bad, letter[side]).otherwise(_written(decoded, side, given[side])).alias(side)
        for side in ("key", "value")
        if given[side] is not None or side in decoded.columns
    }
    headers = F.when(is_bad, _headers(decoded)).otherwise(_original_headers(decoded)).alias("headers")
    where = F.when(is_bad, F.lit(dead_letter_topic)).otherwise(F.lit(topic)).alias("topic")
    return decoded.select(where, *sides.values(), headers)


def letter_options(topic: str | None, whose: str) -> dict[str, str]:
    """The options of the sink for a topic of dead letters in the cluster of the pipeline that is being made.

    Without a topic, the one that `spark.ottla.deadLetters` in the pipeline's configuration names.
    """
    from ottla.spark.pipelines.connections import pipeline_in_use

    spec = pipeline_in_use()
    if spec is None:
        raise SparkOptionError(
            f"{whose} names the dead-letter topic {topic}, but no pipeline is being run that has a cluster: "
            "give dead_letters={'topic': …, 'kafka.bootstrap.servers': …}"
        )
    name = topic or spec.configuration.get(DEFAULT_TOPIC)
    if not name:
        raise SparkOptionError(
            f"{whose} has no topic for dead letters: name one, or add {DEFAULT_TOPIC} to the configuration of the pipeline"
        )
    return {**spec.client_options, "topic": name}


def send_and_keep_rest(df: Any, options: Mapping[str, str]) -> Any:
    """Send the rows with an error to a topic while the DataFrame is evaluated; the other rows remain."""
    return _send_and_keep_rest(df, F.col(ERROR).isNotNull(), _letter(df), options)


def send_rows_and_keep_rest(df: Any, names: list[str], reason: Any, options: Mapping[str, str]) -> Any:
    """Send the rows that have a `reason`, with the columns `names`, to a topic; the other rows remain.

    The value is the column `value` of a record's own columns, else all columns as JSON; the key is the column `key`.
    """
    kinds = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    is_record = kinds.get("value") in BYTES and set(names) <= {"key", "value", "headers", "timestampType", *POSITION}
    value = F.col("value") if is_record else F.to_json(F.struct(*(F.col(f"`{name}`") for name in names)))
    key = F.col("key").cast("binary") if kinds.get("key") in BYTES else F.lit(None).cast("binary")
    has_headers = "headers" in names and kinds["headers"] == HEADERS.simpleString()
    headers = _with_own(F.col("headers") if has_headers else F.lit(None).cast(HEADERS), {"reason": reason} | _position(kinds))
    letter = [key.alias("key"), value.cast("binary").alias("value"), headers.alias("headers")]
    return _send_and_keep_rest(df, reason.isNotNull(), letter, options)


def _send_and_keep_rest(df: Any, is_bad: Any, letter: list[Any], options: Mapping[str, str]) -> Any:
    """Only the bad rows' bytes travel to the Python workers: for good rows the function gets null."""
    from ottla.spark.pipelines import counts

    checked = sink_options(options, is_streaming=True)
    if checked.topic is None:
        raise SparkOptionError("dead_letters has no topic: give the name of the topic for bad records")
    if (watch := counts.current()) is not None:
        watch.topics[checked.topic] = dict(options)
    sender = _sender(checked.topic, checked.client)
    # JSON text is the cheapest column to be null in nearly every row. to_json writes bytes as base64.
    made = F.when(is_bad, F.to_json(F.struct(*letter)))
    return df.withColumn(KEPT, sender(made)).where(F.col(KEPT)).drop(KEPT)


def send(letters: Any, topic: str, client: Mapping[str, str]) -> Any:
    """Send the letters that are not null, as JSON, and wait until they are stored; returns true for the others."""
    import pyarrow.compute as pc

    from ottla.spark import clients

    if letters.null_count < len(letters):
        producer = clients.producer(client)
        found = map(json.loads, letters.drop_null().to_pylist())
        try:
            deliveries = [
                producer.send(topic, _decoded(letter.get("value")), key=_decoded(letter.get("key")), headers=_pairs(letter))
                for letter in found
            ]
            producer.flush()
            for each in deliveries:
                each.result(timeout=0)
        except KafkaError as error:
            sentence = f"a dead letter was not stored in the topic {topic}: {error}"
            raise SinkError(sentence) from error
    return pc.is_null(letters)


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _pairs(letter: Mapping[str, Any]) -> list[tuple[str, bytes | None]]:
    return [(header["key"], _decoded(header.get("value"))) for header in letter["headers"]]


def described_position(df: Any) -> Any:
    """Words for the place of a row's record, from the columns that there are."""
    place = position_text(df)
    return F.lit("a record") if place is None else F.concat(F.lit("the record of "), place)


def position_text(df: Any) -> Any:
    """`orders-1 at offset 6`; None if the columns are not there."""
    if not {"topic", "partition", "offset"} <= set(df.columns):
        return None
    parts = [F.col("topic"), F.lit("-"), F.col("partition"), F.lit(" at offset "), F.col("offset")]
    return F.concat(*(each.cast("string") for each in parts))


def _sender(topic: str, client: Mapping[str, str]) -> Any:
    def send_letters(column: Any) -> Any:
        return send(column, topic, client)

    # Without asNondeterministic Spark may leave the call out, or make it twice.
    return arrow_function(send_letters, "boolean").asNondeterministic()


def _letter(df: Any) -> list[Any]:
    error = F.col(ERROR)
    return [error["key"].alias("key"), error["value"].alias("value"), _headers(df).alias("headers")]


def _headers(df: Any) -> Any:
    error = F.col(ERROR)
    kinds = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    return _with_own(_original_headers(df), {"reason": error["reason"], "field": error["field"]} | _position(kinds))


def _with_own(headers: Any, texts: Mapping[str, Any]) -> Any:
    """The original headers, and ours after them."""
    own = [F.struct(F.lit(PREFIX + name).alias("key"), text.cast("binary").alias("value")) for name, text in texts.items()]
    return F.concat(F.coalesce(headers, F.array().cast(HEADERS)), F.array(*own)).cast(HEADERS)


def _position(kinds: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for name in POSITION:
        if name in kinds:
            is_time = name == "timestamp" and kinds[name] == "timestamp"
            found[name] = (F.unix_millis(F.col(name)) if is_time else F.col(name)).cast("string")
    return found


def _original_headers(df: Any) -> Any:
    return F.col("headers") if "headers" in df.columns else F.lit(None).cast(HEADERS)


def _written(df: Any, side: str, given: Any) -> Any:
    if given is not None:
        return given.cast("binary")
    kind = df.schema[side].dataType.typeName()
    if kind == "struct":
        return F.to_json(F.col(side)).cast("binary")
    column = F.col(side)
    return column if kind == "binary" else column.cast("string").cast("binary")


def _need_error(df: Any, name: str) -> None:
    if ERROR not in df.columns:
        raise SparkOptionError(f"there is no column {ERROR}: {name} takes what decode returns in mode keep")
