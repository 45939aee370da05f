"""Topics with schemas in a registry as typed columns: read with each language, schemas that change, and written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from ottla import Consumer, Producer
from ottla.schemas import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    ProtobufDeserializer,
    Schema,
    SchemaRegistry,
)
from ottla.schemas.framing import prefix
from ottla.spark.errors import sentence_of
from ottla.testing import Broker

Rows = list[Any]
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}, {"name": "city", "type": "string"}]}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
V2 = {**V1, "fields": [{"name": "id", "type": "long"}, V1["fields"][1], NOTE]}  # type: ignore[index]


@pytest.fixture(scope="module")
def url(shared_broker: Broker) -> str:
    return shared_broker.schema_registry_url


@pytest.fixture
def load(spark: Any, shared_broker: Broker, url: str, topic: str) -> Callable[..., Any]:
    """Reads the test's topic: `load(form, is_stream=False, **options)`."""

    def read(form: str = "avro", *, is_stream: bool = False, schema: str | None = None, **options: str) -> Any:
        reader = (spark.readStream if is_stream else spark.read).format("ottla")
        reader = reader.options(**{"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "subscribe": topic})
        reader = reader.options(**{"schema.registry.url": url, "value.format": form, "startingOffsets": "earliest", **options})
        return (reader if schema is None else reader.schema(schema)).load()

    return read


@pytest.fixture
def put(shared_broker: Broker, url: str, topic: str) -> Callable[..., None]:
    """Sends values: `put(schema, *values)`."""

    def send(schema: Any, *values: Any, **options: Any) -> None:
        serializer = AvroSerializer(url, schema, **options)
        with Producer(shared_broker.bootstrap_servers, value_serializer=serializer) as producer:
            for value in values:
                producer.send(topic, value, partition=0, headers=[]).result(30)

    return send


def rows(df: Any) -> Rows:
    return [tuple(row) for row in df.select("value.*").collect()]


def why(error: BaseException) -> str:
    return sentence_of(error) or str(error)


def test_avro_with_both_wire_forms(load: Any, put: Any, shared_broker: Broker, topic: str) -> None:
    put(V1, {"id": 1, "city": "Oslo"})
    put(V1, {"id": 2, "city": "Rome"}, in_header=True)
    with Producer(shared_broker.bootstrap_servers) as producer:
        producer.send(topic, None, partition=0, key=b"gone").result(30)
    df = load()
    assert df.schema["value"].dataType.simpleString() == "struct<id:int,city:string>"
    found = df.orderBy("offset").select("value.id", "value.city", "key", "offset").collect()
    assert [tuple(row) for row in found] == [(1, "Oslo", None, 0), (2, "Rome", None, 1), (None, None, b"gone", 2)]
    pinned = load(schema="value struct<id:int,city:string>, timestamp timestamp")
    assert pinned.columns == ["value", "timestamp"]
    assert sorted(rows(pinned.where("value is not null"))) == [(1, "Oslo"), (2, "Rome")]


def test_the_columns_are_those_of_the_newest_schema_or_of_all(load: Any, put: Any) -> None:
    put(V1, {"id": 1, "city": "Oslo"})
    old = load()
    put(V2, {"id": 1 << 40, "city": "Rome", "note": "n"})
    assert rows(load()) == [(1, "Oslo", None), (1 << 40, "Rome", "n")]
    assert rows(load(**{"schema.evolution": "fail"})) == rows(load()), "what was there at the start is no evolution"
    gone = {**V2, "fields": [V2["fields"][0], {"name": "price", "type": "int", "default": 0}]}  # type: ignore[index]
    put(gone, {"id": 3, "price": 4})
    assert load().schema["value"].dataType.simpleString() == "struct<id:bigint,price:int>"
    widened = load(**{"schema.evolution": "widen"})
    assert widened.schema["value"].dataType.simpleString() == "struct<id:bigint,price:int,city:string,note:string>"
    assert rows(widened) == [(1, None, "Oslo", None), (1 << 40, None, "Rome", "n"), (3, 4, None, None)]
    assert old.schema["value"].dataType.simpleString() == "struct<id:int,city:string>"
    with pytest.raises(PySparkException) as refused:
        load(schema="value struct<id:string>").collect()
    assert "and no version of subject" in why(refused.value)


@pytest.mark.parametrize("evolution", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("keep", "fail")), "widen"])
def test_a_schema_that_is_registered_during_a_stream(
    load: Any, put: Any, evolution: str, tmp_path: Path, topic: str, spark: Any
) -> None:
    put(V1, {"id": 1, "city": "Oslo"})
    found: Rows = []

    def start() -> Any:
        stream = load(is_stream=True, **{"schema.evolution": evolution}).select("value.*")
        writer = stream.writeStream.foreachBatch(lambda batch, _: found.extend(tuple(row) for row in batch.collect()))
        return writer.option("checkpointLocation", str(tmp_path)).start()

    query = start()
    query.processAllAvailable()
    if evolution == "keep":
        put({**V1, "fields": [*V1["fields"], NOTE]}, {"id": 2, "city": "Rome", "note": "n"})  # type: ignore[misc]
        query.processAllAvailable()
        query.stop()
        assert found == [(1, "Oslo"), (2, "Rome")]
        return
    put(V2, {"id": 2, "city": "Rome", "note": "n"})
    with pytest.raises(PySparkException) as failed:
        query.processAllAvailable()
    told = f"subject {topic}-value has a new schema, which the columns do not hold: id is long instead of int, note is new"
    assert told in why(failed.value)
    assert "Start the query again" in why(failed.value)
    assert found == [(1, "Oslo")]
    again = start()
    again.processAllAvailable()
    again.stop()
    assert found == [(1, "Oslo"), (2, "Rome", "n")]


def test_bad_records_fail_or_are_null(load: Any, put: Any, shared_broker: Broker, topic: str, url: str) -> None:
    put(V1, {"id": 1, "city": "Oslo"})
    other = SchemaRegistry(url).register(f"{topic}-other", Schema('{"title": "x"}', "JSON")).id
    with Producer(shared_broker.bootstrap_servers) as producer:
        for value in (b"plain", prefix(999_999), prefix(1) + b"\xff", prefix(other) + b"{}"):
            producer.send(topic, value, partition=0).result(30)
    with pytest.raises(PySparkException) as failed:
        load().collect()
    assert f"the record of {topic}-0 at offset 1 cannot be decoded: the value does not begin with the id of a schema" in why(
        failed.value
    )
    found = load(**{"bad.records": "null"}).orderBy("offset").select("value.id", "value").collect()
    assert [row[0] for row in found] == [1, None, None, None, None]
    assert [row[1] is None for row in found] == [False, True, True, True, True]


JSON_SCHEMA = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/Line"}},
        "tags": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {},
        "maybe": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
    },
    "definitions": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
}


def test_json_schema(load: Any, shared_broker: Broker, topic: str, url: str) -> None:
    value = {"id": 1, "price": 2, "lines": [{"sku": "a", "x": 1}], "tags": {"k": "v"}, "any": {"b": [1]}, "maybe": True}
    serializer = JsonSchemaSerializer(url, JSON_SCHEMA)
    with Producer(shared_broker.bootstrap_servers, value_serializer=serializer) as producer:
        producer.send(topic, value).result(30)
        producer.send(topic, {"id": 2}).result(30)
    df = load("json")
    kind = "struct<id:bigint,price:double,lines:array<struct<sku:string>>,tags:map<string,string>,any:string,maybe:boolean>"
    assert df.schema["value"].dataType.simpleString() == kind
    first, second = sorted(df.select("value.*").collect())
    assert (first["price"], first["lines"][0]["sku"], first["tags"], first["any"], first["maybe"]) == (
        2.0,
        "a",
        {"k": "v"},
        '{"b":[1]}',
        True,
    )
    assert tuple(second) == (2, None, None, None, None, None)
    with Producer(shared_broker.bootstrap_servers) as producer:
        registered = SchemaRegistry(url).latest(f"{topic}-value").id
        producer.send(topic, prefix(registered) + b'{"id": "one"}').result(30)
    with pytest.raises(PySparkException) as failed:
        load("json").collect()
    assert 'the value does not fit the columns: id is "one", which is no integer' in why(failed.value)


PROTO = """\
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
enum Kind { SMALL = 0; LARGE = 1; }
message Order {
  int32 id = 1;
  uint64 big = 2;
  Kind kind = 3;
  repeated Line lines = 4;
  map<string, int64> counts = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.StringValue note = 7;
  optional bool paid = 8;
  message Line { string sku = 1; bytes raw = 2; }
}
message Refund { string reason = 1; }
"""


def test_protobuf_written_and_read(load: Any, spark: Any, shared_broker: Broker, topic: str, url: str) -> None:
    registry = SchemaRegistry(url)
    registry.register(f"{topic}-value", Schema(PROTO, "PROTOBUF"))
    at = datetime(2024, 5, 6, 7, 8, 9, 123456)
    row = (1, Decimal((1 << 63) + 1), "LARGE", [("a", bytearray(b"\x01"))], {"k": 7}, at, "n", None)
    kind = (
        "struct<id:int,big:decimal(20,0),kind:string,lines:array<struct<sku:string,raw:binary>>,counts:map<string,bigint>,"
        "at:timestamp,note:string,paid:boolean>"
    )
    df = spark.createDataFrame([(row,)], f"value {kind}")
    options = {
        "kafka.bootstrap.servers": shared_broker.bootstrap_servers,
        "schema.registry.url": url,
        "value.format": "protobuf",
    }
    writer = df.write.format("ottla").options(**options, topic=topic).mode("append")
    with pytest.raises(PySparkException) as refused:
        writer.save()
    assert "value.format=protobuf needs schema.register=latest" in why(refused.value)
    writer.option("schema.register", "latest").save()
    read = load("protobuf")
    assert read.schema["value"].dataType.simpleString() == kind
    assert [tuple(each) for each in read.select("value.*").collect()] == [row]
    (record,) = shared_broker.records(topic)
    assert record.value is not None
    message = ProtobufDeserializer(url).deserialize(topic, (), record.value)
    assert (message.id, message.big, message.lines[0].sku, message.HasField("paid")) == (1, (1 << 63) + 1, "a", False)
    with pytest.raises(PySparkException) as failed:
        load("protobuf", **{"value.message": "Refund"}).collect()
    assert "the value is a shop.Order, and the columns are those of shop.Refund: choose with value.message" in why(failed.value)
    with pytest.raises(PySparkException) as unknown:
        load("protobuf", **{"value.message": "Nothing"})
    assert "has no message Nothing: there are shop.Order, shop.Order.Line, shop.Refund" in why(unknown.value)


COLUMNS = (
    "value struct<id:bigint,name:string,price:decimal(10,2),at:timestamp,day:date,tags:array<string>,"
    "more:map<string,int>,inner:struct<x:double,raw:binary>>, key int"
)
VALUE = (
    1,
    "a",
    Decimal("1.50"),
    datetime(2024, 5, 6, 7, 8, 9, 123456),
    date(2024, 5, 6),
    ["t", None],
    {"k": 1},
    (0.5, bytearray(b"\x00")),
)


@pytest.mark.parametrize("form", ["avro", pytest.param("json", marks=pytest.mark.slow)])
def test_columns_are_written_with_a_schema_of_their_own(
    load: Any, spark: Any, shared_broker: Broker, topic: str, url: str, form: str
) -> None:
    df = spark.createDataFrame([(VALUE, 7), (None, 8)], COLUMNS)
    options = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "schema.registry.url": url}
    writer = df.write.format("ottla").options(**options, topic=topic, **{"value.format": form, "key.format": form})
    writer.mode("append").save()
    registry = SchemaRegistry(url)
    assert [registry.latest(f"{topic}-{side}").version for side in ("key", "value")] == [1, 1]
    make = AvroDeserializer if form == "avro" else JsonSchemaDeserializer
    with Consumer(
        shared_broker.bootstrap_servers, value_deserializer=make(url), key_deserializer=make(url), group_id=None
    ) as consumer:
        consumer.assign([(topic, number) for number in range(3)])  # type: ignore[list-item]
        consumer.seek_to_beginning()
        found: dict[Any, Any] = {}
        while len(found) < 2:
            found.update({record.key: record.value for record in consumer.poll(timeout=30)})
    assert found[8] is None
    assert (found[7]["id"], found[7]["name"], found[7]["tags"], found[7]["more"]) == (1, "a", ["t", None], {"k": 1})
    assert found[7]["price"] == (VALUE[2] if form == "avro" else "1.50")
    back = load(form, **{"key.format": form}).where("key = 7").select("value.*").collect()[0]
    if form == "avro":
        assert tuple(back) == VALUE
    else:
        assert (back["id"], back["at"], back["inner"]["x"]) == (1, back["at"], 0.5)
        assert datetime.fromisoformat(back["at"]).astimezone(UTC) == VALUE[3].astimezone(UTC)  # type: ignore[attr-defined]


def test_what_the_newest_schema_does_not_have_is_refused(
    spark: Any, shared_broker: Broker, topic: str, url: str, put: Any
) -> None:
    put(V2, {"id": 1, "city": "Oslo", "note": None})
    options = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "schema.registry.url": url, "value.format": "avro"}

    def write(columns: str, value: tuple[Any, ...], register: str = "latest") -> None:
        df = spark.createDataFrame([(value,)], f"value struct<{columns}>")
        df.write.format("ottla").options(**options, topic=topic, **{"schema.register": register}).mode("append").save()

    write("id:int,city:string", (2, "Rome"))
    assert (
        shared_broker.records(topic)[-1].value == prefix(SchemaRegistry(url).latest(f"{topic}-value").id) + b"\x04\x08Rome\x00"
    )
    for columns, value, register, told in (
        ("id:int,city:string,street:string", (3, "", ""), "latest", f"the schema of subject {topic}-value has no field street"),
        ("id:int", (3,), "latest", f"the schema of subject {topic}-value: Field(Order.city) is None expected string"),
        ("id:string", ("x",), "register", f"the values of {topic} have no schema (subject {topic}-value): "),
    ):
        with pytest.raises(PySparkException) as refused:
            write(columns, value, register)
        assert told in why(refused.value)


@pytest.mark.slow
def test_exactly_once_with_a_schema(load: Any, spark: Any, shared_broker: Broker, topic: str, url: str, tmp_path: Path) -> None:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).option("numPartitions", 2).load()
    options = {"kafka.bootstrap.servers": shared_broker.bootstrap_servers, "schema.registry.url": url, "value.format": "avro"}
    writer = stream.selectExpr("struct(value AS number) AS value").writeStream.format("ottla")
    writer = writer.options(**options, topic=topic, exactlyOnce="true", checkpointLocation=str(tmp_path))
    query = writer.trigger(once=True).start()
    query.awaitTermination(60)
    assert sorted(rows(load())) == [(number,) for number in range(5)]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"value.format": "avor"}, "value.format is 'avor': it must be avro, json, protobuf"),
        ({"schema.registry.url": "localhost"}, "'localhost' is no address of a schema registry: write http://HOST:PORT"),
        ({"schema.evolution": "drop"}, "schema.evolution is 'drop': it must be keep, fail or widen"),
        ({"value.message": "Order"}, "value.message is for value.format=protobuf, not avro"),
        ({"key.subject": "x"}, "key.subject is used with key.format, which is not given"),
        (
            {"subscribe": "a,b"},
            "value.format takes its schema from one subject, and the topics are a, b: name it with value.subject",
        ),
        ({"value.subject": "no-such"}, "the columns of value (subject no-such): "),
        ({"schema.registry.url": "http://127.0.0.1:9"}, "the schema registry at http://127.0.0.1:9 does not answer"),
    ],
)
def test_wrong_options_are_refused_with_what_to_do(load: Any, put: Any, options: dict[str, str], told: str) -> None:
    put(V1, {"id": 1, "city": "Oslo"})
    with pytest.raises(PySparkException) as refused:
        load(**options)
    assert told in why(refused.value)
