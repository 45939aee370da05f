"""Avro, plain and with Confluent's prefix, to columns."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from ottla import Producer
from ottla.schemas import AvroSerializer, Schema, SchemaRegistry
from ottla.schemas.framing import prefix
from ottla.spark import decode
from ottla.spark.decoding.avro import AvroReader, avro_type, parsed_avro, plain_schema
from ottla.spark.errors import SparkOptionError
from ottla.testing import Broker

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}
OLD_ORDER: dict[str, Any] = {**ORDER, "fields": [each for each in ORDER["fields"] if each["name"] != "customer"]}
AT = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


def order(number: int) -> dict[str, Any]:
    price = Decimal(number) + Decimal("0.25")
    return {"id": number, "customer": f"c{number}", "at": AT, "day": date(2026, 1, 2), "price": price, "tags": {"a": "b"}}


def encoded(schema: Any, value: Any) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, value)
    return written.getvalue()


def test_records_are_read_into_columns(spark: Any) -> None:
    good = encoded(ORDER, order(7))
    rows = spark.createDataFrame([(good,), (good[:-3],), (good + b"x",), (b"",), (None,)], "value binary")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        found = decode(rows, value="avro", schema=json.dumps(ORDER))
        seconds = found.selectExpr("unix_millis(value.at)").first()[0]
        first, *others = found.collect()
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert first.value.asDict() == {**order(7), "at": first.value.at}
    assert seconds == int(AT.timestamp() * 1000)
    assert [row.value for row in others] == [None] * 4
    assert [row._error and row._error.reason for row in others] == [
        f"the value ends too early: {len(good) - 3} bytes do not hold the schema's fields",
        "the value does not fit the Avro schema: 1 bytes are left after its last field",
        "the value ends too early: 0 bytes do not hold the schema's fields",
        None,
    ]


def reader(registry: Any) -> AvroReader:
    return AvroReader(ORDER, avro_type(ORDER), True, registry)


def test_a_prefix_names_the_writers_schema() -> None:
    asked = []

    def registry(schema_id: int) -> Any:
        asked.append(schema_id)
        return {1: OLD_ORDER, 2: json.dumps(ORDER)}[schema_id]

    values = [
        b"\0\0\0\0\1" + encoded(OLD_ORDER, order(1)),
        b"\0\0\0\0\2" + encoded(ORDER, order(2)),
        b"\0\0\0\0\1" + encoded(OLD_ORDER, order(3)),
        b"\0\0\0\0\x09" + encoded(ORDER, order(4)),
        b"\1\0\0\0\1",
        b"\0\0",
    ]
    found = reader(registry).decode(pa.array(values, pa.binary())).to_pylist()
    assert [row["decoded"] and (row["decoded"]["id"], row["decoded"]["customer"]) for row in found] == [
        (1, None),
        (2, "c2"),
        (3, None),
        None,
        None,
        None,
    ]
    assert asked == [1, 2, 9]
    unknown, *no_prefix = [row["reason"] for row in found[3:]]
    assert unknown == "has the schema id 9, which the registry does not know: 9"
    assert no_prefix == ["does not begin with a zero byte and a schema id, as Confluent's serializers write"] * 2


def test_without_a_registry_the_given_schema_is_the_writers() -> None:
    values = pa.array([b"\0\0\0\0\1" + encoded(ORDER, order(1))], pa.binary())
    assert reader(None).decode(values).to_pylist()[0]["decoded"]["id"] == 1


def test_a_value_too_large_for_its_column_is_a_bad_record_alone() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
    values = [encoded(wide, Decimal("1.25")), encoded(wide, Decimal("123456.25"))]
    found = AvroReader(kind, avro_type(kind), False, None).decode(pa.array(values, pa.binary())).to_pylist()
    assert found[0] == {"decoded": Decimal("1.25"), "reason": None, "unknown": None}
    assert found[1]["decoded"] is None
    assert "fit" in found[1]["reason"]


def test_a_timestamp_beyond_its_column_is_a_bad_record_alone() -> None:
    kind = {"type": "long", "logicalType": "timestamp-millis"}
    values = [encoded("long", 5), encoded("long", 1 << 62)]
    found = AvroReader(kind, avro_type(kind), False, None).decode(pa.array(values, pa.binary())).to_pylist()
    assert found[0]["decoded"] == datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)
    assert found[1]["decoded"] is None
    assert "does not fit its column type: " in found[1]["reason"]


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


def test_decode_with_the_address_of_a_registry(spark: Any, shared_broker: Broker, topic: str) -> None:
    url = shared_broker.schema_registry_url
    with Producer(shared_broker.bootstrap_servers, value_serializer=AvroSerializer(url, OLD_ORDER)) as producer:
        old = {name: value for name, value in order(1).items() if name != "customer"}
        producer.send(topic, old, partition=0).result(30)
    with Producer(shared_broker.bootstrap_servers) as producer:
        producer.send(topic, prefix(999_999) + b"x", partition=0).result(30)
    SchemaRegistry(url).register(f"{topic}-value", Schema(json.dumps(ORDER)))
    df = spark.read.format("ottla").option("kafka.bootstrap.servers", shared_broker.bootstrap_servers)
    df = df.option("subscribe", topic).load()
    found = decode(df, value="confluent-avro", registry=url, subject=f"{topic}-value").orderBy("offset").collect()
    assert (found[0].value.id, found[0].value.customer, found[0].value.price) == (1, None, Decimal("1.25"))
    assert "the value has the schema id 999999, which the registry does not know" in found[1]._error.reason
    with pytest.raises(SparkOptionError, match="subject no-such has no schema to read with"):
        decode(df, value="confluent-avro", registry=url, subject="no-such")
    with pytest.raises(SparkOptionError, match="needs schema= or subject"):
        decode(df, value="confluent-avro", registry=url)
    with pytest.raises(SparkOptionError, match="subject is used with the address of a registry"):
        decode(df, value="confluent-avro", schema=ORDER, subject="x")
