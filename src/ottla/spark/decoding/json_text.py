"""JSON objects to structs, with Spark's own from_json in the JVM, and the bad records that from_json lets through as nulls.

from_json alone is silent in these cases, each of them measured on PySpark 4.3: empty text gives null; a field of the wrong type
gives null; text after the object is ignored; bytes that are no UTF-8 become U+FFFD. Its corrupt-record column shows the wrong
types and the broken texts; the rest is checked here. The reason is worked out only for bad records: `when` evaluates lazily.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from ottla.spark.errors import SparkOptionError

CORRUPT = "_ottla_corrupt"
STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}
"""What JSON itself does not allow, and Spark does by default. `options` can allow it again."""
SHOWN_CHARACTERS = 40
WHITESPACE = " \t\r\n"
TEXT_AFTER_OBJECT = r"\}\s*\{"
"""May mean a second object after the first one; a string may hold it too, so it is checked again when it is found."""

NO_TEXT = r"(?s)^(-?[0-9][0-9.eE+-]*|true|false|[{\[].*)$"
"""What a column of text may hold if the JSON has a number, a boolean, an object or an array for it."""

KINDS = {
    "STRING": "string",
    "BIGINT": "number",
    "BOOLEAN": "boolean",
    "OBJECT": "object",
    "ARRAY": "array",
    "DOUBLE": "fraction",
    "FLOAT": "fraction",
    "DECIMAL": "fraction",
}
"""Types of variants, by their first word, and how we call them."""


class JsonDecoder:
    """A JSON object to a struct."""

    def __init__(self, side: str, schema: Any, options: Mapping[str, str]) -> None:
        self._side = side
        self._schema = parsed_schema(schema, "schema" if side == "value" else "key_schema")
        self._options = {**STRICT, **options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}

    def stage(self, source: Any) -> Any:
        """The struct, and the text itself in the corrupt-record column if it did not fit."""
        schema = StructType([*self._schema.fields, StructField(CORRUPT, StringType())])
        return F.from_json(source.cast("string"), schema, self._options)

    def value(self, staged: Any, source: Any) -> Any:
        """The struct without the corrupt-record column."""
        return F.when(source.isNotNull(), F.struct(*(staged[name].alias(name) for name in self._schema.names)))

    def reason(self, staged: Any, source: Any) -> Any:
        """Why the text is no object of this schema; null if it is one, and for null."""
        text = source.cast("string")
        missing = [field.name for field in self._schema.fields if not field.nullable]
        reason = (
            F.when(source.isNull(), F.lit(None).cast("string"))
            .when(~F.is_valid_utf8(text), F.lit(f"the {self._side} is not valid UTF-8"))
            .when(staged.isNull(), F.lit(f"the {self._side} is empty: there is no JSON in it"))
            .when(staged[CORRUPT].isNotNull(), self._misfit(staged, text))
            .when(
                # Trimming copies the text: most texts need none.
                ~F.endswith(text, F.lit("}")) & ~F.endswith(F.btrim(text, F.lit(WHITESPACE)), F.lit("}")),
                self._sentence("has text after its JSON object", text),
            )
            .when(
                F.regexp_like(text, F.lit(TEXT_AFTER_OBJECT)),
                F.when(
                    F.from_json(F.concat(F.lit("["), text, F.lit("]")), "array<string>", {"mode": "PERMISSIVE"}).isNull(),
                    self._sentence("has text after its JSON object", text),
                ),
            )
        )
        for name in missing:
            reason = F.coalesce(reason, F.when(source.isNotNull() & staged[name].isNull(), F.lit(f"{name} is missing")))
        return reason

    def unknown_fields(self, staged: Any, source: Any) -> Any:
        """New fields of the object, and columns of text that are no text in the JSON: from_json takes any value for them.

        Objects inside of it are not looked into.
        """
        text = source.cast("string")
        names = F.json_object_keys(text)
        new = F.array_except(names, F.array(*(F.lit(name) for name in self._schema.names)))
        found = F.transform(F.array_sort(new), lambda name: F.concat(name, F.lit(" is new")))
        strings = [each.name for each in self._schema.fields if isinstance(each.dataType, StringType)]
        if not strings:
            return F.when(F.size(found) > 0, F.concat_ws(", ", found))
        # The text of a value is looked at first: parsing it again is needed only if it may be one of another type.
        may_differ = F.lit(False)
        for name in strings:
            may_differ = may_differ | F.coalesce(staged[name].rlike(NO_TEXT), F.lit(False))
        same = " is string instead of string"
        each = F.array(
            *(F.concat(F.lit(f"{name} is "), self._kind_of(text, name), F.lit(" instead of string")) for name in strings)
        )
        other = F.filter(each, lambda words: ~words.endswith(same))
        found = F.concat(found, F.when(may_differ, other).otherwise(F.array().cast("array<string>")))
        return F.when(F.size(found) > 0, F.concat_ws(", ", found))

    def fields(self, staged: Any) -> dict[str, Any]:
        """The columns of the schema."""
        return {name: staged[name] for name in self._schema.names}

    def _kind_of(self, text: Any, name: str) -> Any:
        """The type of a field in the JSON: `string`, `number`, `fraction`, `boolean`, `object`, `array`; null if it is null."""
        quote = '"' if "'" in name else "'"
        kind = F.schema_of_variant(F.try_variant_get(F.try_parse_json(text), f"$[{quote}{name}{quote}]", "variant"))
        # The expression is there once: Spark compiles each copy of it.
        words = F.create_map(*(F.lit(each) for pair in KINDS.items() for each in pair))
        plain = F.regexp_replace(kind, r"^DECIMAL\(\d+,0\)", "BIGINT")
        return F.try_element_at(words, F.regexp_extract(plain, r"^[A-Z]+", 0))

    def _misfit(self, staged: Any, text: Any) -> Any:
        """Which fields have the wrong type: those that are there as text, and are null in the struct."""
        texts = StructType([StructField(name, StringType()) for name in [*self._schema.names, CORRUPT]])
        found = F.from_json(text, texts, self._options)
        misfits = [
            F.when(
                found[field.name].isNotNull() & self._is_unfit(field.dataType, staged[field.name]),
                F.concat(
                    F.lit(f"{field.name} is the "),
                    F.coalesce(self._kind_of(text, field.name), F.lit("value")),
                    F.lit(" "),
                    _shown(found[field.name]),
                    F.lit(f": it must be {field.dataType.simpleString()}"),
                ),
            )
            for field in self._schema.fields
        ]
        sentence = F.when(F.try_parse_json(text).isNull(), self._sentence("is not valid JSON", text))
        sentence = sentence.when(found[CORRUPT].isNotNull(), self._sentence("is no JSON object", text))
        named = F.concat_ws("; ", *misfits)
        return sentence.when(named != "", named).otherwise(self._sentence("does not fit the schema", text))

    def _is_unfit(self, kind: DataType, parsed: Any) -> Any:
        # A struct with a wrong field inside is not null itself: any of its fields may be the one.
        return parsed.isNull() if not isinstance(kind, StructType) else F.lit(True)

    def _sentence(self, words: str, text: Any) -> Any:
        return F.concat(F.lit(f"the {self._side} {words}: "), _shown(text))


def _shown(text: Any) -> Any:
    return F.when(F.length(text) <= SHOWN_CHARACTERS, text).otherwise(
        F.concat(F.left(text, F.lit(SHOWN_CHARACTERS)), F.lit("…"))
    )


def parsed_schema(schema: Any, argument: str) -> StructType:
    """A struct from DDL text or from a StructType; `SparkOptionError` names the argument."""
    if isinstance(schema, str):
        try:
            schema = StructType.fromDDL(schema)
        except Exception as problem:  # a ParseException of Spark's, with the whole grammar in it
            first = next((line.strip() for line in str(problem).splitlines() if line.strip()), type(problem).__name__)
            raise SparkOptionError(
                f"{argument} is no list of columns such as 'order_id long, amount double': {first}"
            ) from None
    if not isinstance(schema, StructType) or not schema.fields:
        raise SparkOptionError(
            f"{argument} must be columns such as 'order_id long, amount double', or a StructType with fields"
        )
    return schema
