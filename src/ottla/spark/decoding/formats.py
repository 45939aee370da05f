"""The formats by name, and what each decoder provides."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ottla.spark.errors import SparkOptionError

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
            example = "'order_id long, amount double'" if chosen == "json" else "the Avro schema as JSON text or dict"
            raise SparkOptionError(f"{side}={name!r} needs {argument}=, such as {example}")
        if chosen == "json":
            from ottla.spark.decoding.json_text import JsonDecoder

            return JsonDecoder(side, schema, options)
        from ottla.spark.decoding.avro import AvroDecoder

        return AvroDecoder(side, schema, has_prefix=chosen == "confluent-avro", registry=registry)
    if schema is not None:
        raise SparkOptionError(f"{argument} is for the formats json and Avro; {side} is {chosen}")
    if chosen in NUMBERS:
        from ottla.spark.decoding.numbers import NumberDecoder

        return NumberDecoder(side, chosen)
    from ottla.spark.decoding.text import BytesDecoder, TextDecoder, UuidDecoder

    if chosen == "bytes":
        return BytesDecoder(side)
    return UuidDecoder(side) if chosen == "uuid" else TextDecoder(side)
