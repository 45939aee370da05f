"""What the comparison of Avro schemas calls compatible, fastavro can read; what it refuses, it explains with the field."""

import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from tests.support.cases.avro_schemas import Schemas

from ottla.schemas.languages import Source
from ottla.schemas.languages.avro import differences

PAIRS_QUICK = 400
PAIRS = 10_000
VALUES = 5


def compared(reader: Any, writer: Any) -> list[str]:
    return differences(Source("AVRO", json.dumps(reader)), Source("AVRO", json.dumps(writer)))


@pytest.mark.parametrize("count", [PAIRS_QUICK, pytest.param(PAIRS, marks=pytest.mark.slow)])
def test_fastavro_reads_what_is_called_compatible(count: int) -> None:
    schemas = Schemas(count)
    compatible = 0
    for _ in range(count):
        writer = schemas.schema()
        reader = schemas.changed(writer)
        if compared(reader, writer):
            continue
        compatible += 1
        own, other = parse_schema(writer), parse_schema(reader)
        for _ in range(VALUES):
            out = io.BytesIO()
            schemaless_writer(out, own, schemas.value(writer))
            schemaless_reader(io.BytesIO(out.getvalue()), own, other)
    assert compatible > count / 5


@pytest.mark.parametrize("count", [PAIRS_QUICK, pytest.param(PAIRS, marks=pytest.mark.slow)])
def test_what_fastavro_cannot_read_at_all_is_refused(count: int) -> None:
    """The other way: a reason is never given for a schema that is the same, and values that fail have one."""
    schemas = Schemas(count + 1)
    for _ in range(count):
        writer = schemas.schema()
        assert compared(writer, writer) == []
        reader = schemas.changed(writer)
        own, other = parse_schema(writer), parse_schema(reader)
        try:
            for _ in range(VALUES):
                out = io.BytesIO()
                schemaless_writer(out, own, schemas.value(writer))
                schemaless_reader(io.BytesIO(out.getvalue()), own, other)
        except Exception:
            assert compared(reader, writer), (reader, writer)


RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


def changed(**field: Any) -> Any:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"} | field]}


@pytest.mark.parametrize(
    ("reader", "writer", "reason"),
    [
        (changed(type="string"), RECORD, "TYPE_MISMATCH at /fields/0/type: string is expected, and the other schema has int"),
        (changed(name="b"), RECORD, "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/0: field 'b' of record R has no default"),
        (RECORD | {"name": "S"}, RECORD, "NAME_MISMATCH at /name: record S is called R in the other schema"),
        (changed(type=["string"]), RECORD, "MISSING_UNION_BRANCH at /fields/0/type: no branch of the union (string)"),
        (
            RECORD,
            changed(type=["int", "null"]),
            "MISSING_UNION_BRANCH at /fields/0/type: the other schema may have a null",
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            "MISSING_ENUM_SYMBOLS at /symbols: enum E does not know the symbols B of the other schema",
        ),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            "FIXED_SIZE_MISMATCH at /size: fixed F has 2 bytes, and 3 in the other schema",
        ),
    ],
    ids=lambda each: each.split(" ")[0] if isinstance(each, str) else "",
)
def test_every_kind_of_difference_names_its_place(reader: Any, writer: Any, reason: str) -> None:
    (found,) = compared(reader, writer)
    assert found.startswith(reason)


def test_recursive_schemas_are_compared_once_per_pair() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "N"]}]}
    wider = json.loads(json.dumps(node).replace('"int"', '"long"'))
    assert compared(wider, node) == []
    assert compared(node, wider) == [
        "TYPE_MISMATCH at /fields/0/type: int is expected, and the other schema has long",
    ]
