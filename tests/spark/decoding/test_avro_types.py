"""Avro schemas as column types."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ottla.spark.decoding.avro import avro_type, parsed_avro, plain_schema
from ottla.spark.errors import SparkOptionError


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}


def test_types_are_those_of_sparks_avro_reader() -> None:
    money = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    schema = record(
        ("id", "long"),
        ("name", ["null", "string"]),
        ("when", {"type": "long", "logicalType": "timestamp-millis"}),
        ("day", {"type": "int", "logicalType": "date"}),
        ("price", money),
        ("kind", {"type": "enum", "name": "Kind", "symbols": ["A"]}),
        ("again", ["null", "Kind"]),
        ("hash", {"type": "fixed", "name": "Hash", "size": 4}),
        ("tags", {"type": "array", "items": record(("t", "string"), name="Tag")}),
        ("counts", {"type": "map", "values": ["int", "long"]}),
        ("at", {"type": "int", "logicalType": "time-millis"}),
    )
    found = avro_type(schema)
    assert found.spark == (
        "struct<`id`:bigint,`name`:string,`when`:timestamp,`day`:date,`price`:decimal(9,2),`kind`:string,`again`:string,"
        "`hash`:binary,`tags`:array<struct<`t`:string>>,`counts`:map<string,bigint>,`at`:int>"
    )
    assert found.read.field("when").type == pa.timestamp("ms", tz="UTC")
    assert found.made.field("when").type == pa.timestamp("us", tz="UTC")


def test_schemas_without_a_column_type_are_refused() -> None:
    for schema, sentence in [
        (record(("u", ["null", "int", "string"])), "the Avro union of int, string at u has no column type"),
        (record(("next", ["null", "R"])), "the Avro schema is recursive: next contains R again"),
        (record(("x", "Missing")), "the Avro schema uses the type Missing at x, which it does not define"),
        (record(), "the Avro record R has no fields"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50}, "has precision 50 and scale 0: Spark has up to 38"),
        ({"items": "int"}, "the Avro schema has no type at its top"),
    ]:
        with pytest.raises(SparkOptionError) as problem:
            avro_type(schema)
        assert sentence in str(problem.value)


def test_text_is_parsed_and_logical_types_are_taken_off() -> None:
    assert parsed_avro('{"type": "long", "logicalType": "timestamp-millis"}', "schema") == {
        "type": "long",
        "logicalType": "timestamp-millis",
    }
    assert parsed_avro("long", "schema") == "long"
    assert plain_schema(record(("a", [{"type": "string", "logicalType": "uuid"}]))) == record(("a", [{"type": "string"}]))
    with pytest.raises(SparkOptionError, match="schema is no JSON text"):
        parsed_avro("{", "schema")
    with pytest.raises(SparkOptionError, match="schema must be an Avro schema as JSON text or dict, not int"):
        parsed_avro(5, "schema")
