"""Generated encoders write what fastavro writes, byte for byte, and leave to it what they do not take."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from fastavro import parse_schema, schemaless_writer
from tests.support.cases.avro_schemas import Schemas

from ottla.schemas.avro_encoder import encoder_of

NODE = {"type": "record", "name": "Node", "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Node"]}]}


def of_field(kind: Any) -> Any:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}


def by_fastavro(schema: Any, value: Any) -> bytes | None:
    out = io.BytesIO()
    try:
        schemaless_writer(out, parse_schema(schema), value)
    except Exception:
        return None
    return out.getvalue()


def ours(schema: Any, value: Any) -> bytes | None:
    """None if the value or the schema is left to fastavro."""
    parsed = parse_schema(json.loads(json.dumps(schema)))
    encode = encoder_of(parsed, parsed["__named_schemas"])
    if encode is None:
        return None
    try:
        return encode(value)
    except Exception:
        return None


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_values_have_the_bytes_that_fastavro_writes(count: int) -> None:
    schemas = Schemas(count)
    taken = 0
    for _ in range(count):
        schema = schemas.schema()
        for _ in range(3):
            value = schemas.value(schema)
            found = ours(schema, value)
            assert found is None or found == by_fastavro(schema, value), (schema, value)
            taken += found is not None
    assert taken > count / 2


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("long", each) for each in (0, -1, 63, 64, -64, -65, 8191, 1 << 40, -(1 << 63), (1 << 63) - 1)),
        ("int", (1 << 31) - 1),
        ("double", 3),
        ("float", 0.1),
        ("double", float("nan")),
        ("string", "grüße\U0001f600"),
        ("boolean", True),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B"),
        (["null", {"type": "array", "items": ["string", "null"]}], ["x", None]),
        (["long", "null"], None),
        ({"type": "map", "values": {"type": "map", "values": "bytes"}}, {"a": {"b": b"c"}, "d": {}}),
        ({"type": "long", "logicalType": "timestamp-millis"}, datetime(2026, 2, 3, 4, 5, 6, 789000, UTC)),
        ({"type": "int", "logicalType": "date"}, date(2026, 2, 3)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-12.34")),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=7)),
        (["null", {"type": "long", "logicalType": "timestamp-micros"}], datetime(2026, 2, 3, tzinfo=UTC)),
    ],
)
def test_values_of_every_type(kind: Any, value: Any) -> None:
    found = ours(of_field(kind), {"a": value})
    assert found is not None
    assert found == by_fastavro(of_field(kind), {"a": value})


def test_recursive_records() -> None:
    value = {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}}
    assert ours(NODE, value) == by_fastavro(NODE, value) is not None


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", 1 << 31),
        ("long", 1 << 63),
        ("long", 1.0),
        ("long", True),
        ("string", b"bytes"),
        ("string", None),
        ("bytes", "text"),
        ("boolean", 1),
        ({"type": "fixed", "name": "F", "size": 2}, b"x"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B"),
        ({"type": "array", "items": "int"}, ("a", "tuple")),
        (["int", "string"], 1),
    ],
)
def test_what_is_unusual_is_left_to_fastavro(kind: Any, value: Any) -> None:
    assert ours(of_field(kind), {"a": value}) is None


def test_a_missing_field_is_left_to_fastavro_which_knows_its_default() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 7}]}
    assert ours(schema, {}) is None
    assert by_fastavro(schema, {}) == bytes([14])
