"""Dead letters: records that could not be decoded, with their original key, value and headers, and why and where in headers.

| header | text |
|---|---|
| `ottla.error.reason` | why the record was refused |
| `ottla.error.field` | `key` or `value` |
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
from ottla.spark.decoding.arrow_functions import arrow_function
from ottla.spark.errors import SinkError, SparkOptionError
from ottla.spark.schema import HEADERS
from ottla.spark.sink.options import sink_options

ERROR = "_error"
PREFIX = "ottla.error."
POSITION = ("topic", "partition", "offset", "timestamp")
KEPT = "_ottla_kept"


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


def send_and_keep_rest(df: Any, options: Mapping[str, str]) -> Any:
    """Send the rows with an error to a topic while the DataFrame is evaluated; the other rows remain.

    Only the bad rows' bytes travel to the Python workers: for good rows the function gets null.
    """
    checked = sink_options(options, is_streaming=True)
    if checked.topic is None:
        raise SparkOptionError("dead_letters has no topic: give the name of the topic for bad records")
    sender = _sender(checked.topic, checked.client)
    # JSON text is the cheapest column to be null in nearly every row. to_json writes bytes as base64.
    letter = F.when(F.col(ERROR).isNotNull(), F.to_json(F.struct(*_letter(df))))
    return df.withColumn(KEPT, sender(letter)).where(F.col(KEPT)).drop(KEPT)


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
            sentence = f"a record that cannot be decoded was not stored in the dead-letter topic {topic}: {error}"
            raise SinkError(sentence) from error
    return pc.is_null(letters)


def _decoded(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _pairs(letter: Mapping[str, Any]) -> list[tuple[str, bytes | None]]:
    return [(header["key"], _decoded(header.get("value"))) for header in letter["headers"]]


def described_position(df: Any) -> Any:
    """Words for the place of a row's record, from the columns that there are."""
    if not {"topic", "partition", "offset"} <= set(df.columns):
        return F.lit("a record")
    parts = [F.col("topic"), F.lit("-"), F.col("partition"), F.lit(" at offset "), F.col("offset")]
    return F.concat(F.lit("the record of "), *(each.cast("string") for each in parts))


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
    texts = {"reason": error["reason"], "field": error["field"]}
    for name in POSITION:
        if name in df.columns:
            column = F.col(name)
            texts[name] = (F.unix_millis(column) if name == "timestamp" else column).cast("string")
    own = [F.struct(F.lit(PREFIX + name).alias("key"), text.cast("binary").alias("value")) for name, text in texts.items()]
    return F.concat(F.coalesce(_original_headers(df), F.array().cast(HEADERS)), F.array(*own)).cast(HEADERS)


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
