"""What schemas mean as columns, without Spark: types, changes, schemas united, values read and written."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.schemas import Schema, SchemaRegistry
from ottla.schemas.framing import Framed
from ottla.spark.errors import SparkOptionError
from ottla.spark.registry import languages
from ottla.spark.registry.languages import Unreadable, language_of, united_avro

REGISTRY = SchemaRegistry("http://127.0.0.1:1")
BARE = Framed(1, "", b"", 0)


def avro(*fields: Any) -> Schema:
    return Schema(json.dumps({"type": "record", "name": "R", "fields": [*fields]}))


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def json_schema(schema: Any) -> Schema:
    return Schema(json.dumps(schema), "JSON")


def proto(text: str) -> Schema:
    return Schema(f'syntax = "proto3"; package p; {text}', "PROTOBUF")


NUMBERS = ["int", "long", "float", "double"]
KINDS = st.sampled_from([*NUMBERS, "string", "boolean", "bytes"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 53), 1 << 53),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=5),
    "boolean": st.booleans(),
    "bytes": st.binary(max_size=5),
}


@given(st.data())
def test_values_of_every_version_are_read_with_the_united_schema(data: st.DataObject) -> None:
    """A field is a number in all versions, of any width, or keeps its type; fields come and go, nullable or not."""
    of_number = {name: data.draw(st.booleans()) for name in "abc"}
    fixed = {name: data.draw(KINDS) for name in "abc"}
    versions = []
    for _ in range(data.draw(st.integers(1, 3))):
        fields = []
        for name in "abc":
            if data.draw(st.booleans()):
                kind = data.draw(st.sampled_from(NUMBERS)) if of_number[name] else fixed[name]
                fields.append(field(name, data.draw(st.sampled_from([kind, ["null", kind]]))))
        versions.append({"type": "record", "name": "R", "fields": [field("id", "int"), *fields]})
    united = versions[0]
    for each in versions[1:]:
        united = united_avro(united, each)
    for version in versions:
        value: dict[str, Any] = {"id": 1}
        for each in version["fields"][1:]:
            kinds = each["type"] if isinstance(each["type"], list) else [each["type"]]
            value[each["name"]] = data.draw(st.none() if kinds[0] == "null" and data.draw(st.booleans()) else VALUES[kinds[-1]])
        out = io.BytesIO()
        fastavro.schemaless_writer(out, version, value)
        out.seek(0)
        found = fastavro.schemaless_reader(out, version, united)
        assert isinstance(found, dict)
        assert {name: each for name, each in found.items() if name in value} == pytest.approx(value)
        assert all(each is None for name, each in found.items() if name not in value)


@pytest.mark.parametrize(
    ("kind", "old", "new", "changes"),
    [
        ("AVRO", avro(field("a", "int")), avro(field("a", "int"), field("b", "string")), ["b is new"]),
        ("AVRO", avro(field("a", "long")), avro(field("a", "int")), []),
        ("AVRO", avro(field("a", "int")), avro(field("a", "long")), ["a is long instead of int"]),
        ("AVRO", avro(field("a", "int"), field("b", "int")), avro(field("a", "int")), []),
        ("JSON", json_schema({"properties": {"a": {"type": "integer"}}}), json_schema({"properties": {}}), []),
        (
            "JSON",
            json_schema({"properties": {"a": {"type": "integer"}, "o": {"properties": {"x": {"type": "string"}}}}}),
            json_schema({"properties": {"a": {"type": "string"}, "o": {"properties": {"y": {"type": "string"}}}}}),
            ["a is string instead of bigint", "o.y is new"],
        ),
        ("PROTOBUF", proto("message M { int32 a = 1; }"), proto("message M { int32 renamed = 1; }"), []),
        (
            "PROTOBUF",
            proto("message M { int32 a = 1; E e = 3; } enum E { X = 0; }"),
            proto("message M { string a = 1; int32 b = 2; E e = 3; } enum E { X = 0; Y = 1; }"),
            ["a has another type", "b is new", "e has the new symbol Y"],
        ),
    ],
)
def test_changes_that_columns_do_not_hold(kind: str, old: Schema, new: Schema, changes: list[str]) -> None:
    assert language_of(kind, REGISTRY, [old], None).changes(new) == changes


@pytest.mark.parametrize(
    ("kind", "schema", "told"),
    [
        (
            "JSON",
            json_schema({"$ref": "#/$defs/N", "$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}}}),
            "is recursive",
        ),
        ("PROTOBUF", proto("message M { M m = 1; }"), "is recursive: m contains p.M again"),
        ("PROTOBUF", proto("message M {}"), "has no fields"),
        ("PROTOBUF", proto("enum E { X = 0; }"), "has no message"),
        ("AVRO", avro(field("u", ["int", "string"])), "union of int, string at u has no column type"),
    ],
)
def test_schemas_without_columns_are_refused(kind: str, schema: Schema, told: str) -> None:
    with pytest.raises(SparkOptionError, match=told):
        language_of(kind, REGISTRY, [schema], None)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "is not JSON"),
        (b"[]", "it is no object"),
        (b'{"n": true}', "n is true, which is no integer"),
        (b'{"n": 1.5}', "n is 1.5, which is no integer"),
        (b'{"l": [1, "x"]}', r'l\[\] is "x", which is no integer'),
        (b'{"o": {"x": 1}}', "o.x is 1, which is no string"),
    ],
)
def test_json_that_does_not_fit_says_where(data: bytes, told: str) -> None:
    integer = {"type": "integer"}
    parts = {"n": integer, "l": {"items": integer, "type": "array"}, "o": {"properties": {"x": {"type": "string"}}}}
    schema = json_schema({"properties": parts})
    read = language_of("JSON", REGISTRY, [schema], None).reader_of(schema)
    assert read(b'{"n": 2.0, "l": null}', BARE) == {"n": 2, "l": None, "o": None}
    with pytest.raises(Unreadable, match=told):
        read(data, BARE)


@pytest.mark.parametrize(("kind", "package"), [("AVRO", "fastavro"), ("PROTOBUF", "protobuf")])
def test_a_missing_package_is_named(kind: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(languages, "import_module", absent)
    with pytest.raises(SparkOptionError, match=rf"needs the package {package} where Spark's driver and workers run"):
        language_of(kind, REGISTRY, [avro()], None)
