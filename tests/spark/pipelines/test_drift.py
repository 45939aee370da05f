"""Schema drift: data that differs from the schema, or from what came before. It is named, counted, and never a silent null."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.spark.pipelines.folders import write_pipeline
from tests.support.servers.ottla_cli import Said, run_cli

from ottla.spark.decoding.avro import AvroReader, avro_type, changed_fields
from ottla.spark.pipelines.counts import NEVER_NULL
from ottla.testing import Broker

GIVEN = """sources: {{orders: {{subscribe: {topic}, startingOffsets: earliest}}}}
sinks: {{out: {{topic: {topic}-out}}}}
configuration: {{}}
"""
JSON_FLOW = """
from ottla.spark import decode
@dp.append_flow(target="out")
def copy():
    orders = decode(
        spark.readStream.table("orders"), value="json", schema="id INT, name STRING, amount DOUBLE", dead_letters="{topic}-dead"
    )
    return orders.selectExpr("to_json(value) AS value")
"""


def run(folder: Path, broker: Broker, topic: str, flow: str) -> Said:
    given = GIVEN.format(topic=topic).replace("configuration: {}\n", "")
    write_pipeline(folder, {"flows.py": flow.replace("{topic}", topic)}, given, broker.bootstrap_servers)
    said = run_cli("pipeline", "run", folder)
    assert said.rc == 0, said.err
    return said


def told(said: Said) -> list[str]:
    """What is said about data."""
    head = "ottla: the flow copy: copy: "
    return [line.removeprefix(head) for line in said.err.splitlines() if line.startswith(head)]


@pytest.fixture
def topic(shared_broker: Broker, request: pytest.FixtureRequest) -> str:
    """A topic of one partition, with topics for results and dead letters."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    for each in (name, f"{name}-out", f"{name}-dead"):
        shared_broker.create_topic(each)
    return name


def test_json_that_changes_is_named_with_field_types_count_and_place(
    tmp_path: Path, spark: Any, shared_broker: Broker, topic: str
) -> None:
    values = [
        '{"id": 1, "name": "ann", "amount": 5}',
        '{"id": "2", "name": "bob", "amount": 5}',
        '{"id": "3", "name": "bob", "amount": 5}',
        '{"id": 4.5, "name": "bob"}',
        '{"id": 5, "name": 17, "amount": 5}',
        '{"id": 6, "name": "18", "amount": 5}',
        '{"id": 7, "name": {"first": "ann"}, "coupon": "x"}',
        '{"id": 8, "name": null, "amount": true}',
    ]
    for value in values:
        shared_broker.produce(topic, value)
    at = f"{topic}-0 at offset"
    bad = (
        f"4 of 8 records could not be decoded and are in the topic {topic}-dead: id must be int, not string (2, {at} 2), "
        f"amount must be double, not boolean (1, {at} 7), id must be int, not fraction (1, {at} 3); such as id is the string "
        "3: it must be int"
    )
    drifted = (
        f"2 of 8 records differ from the schema: coupon is new (1, {at} 6), name is number instead of string (1, {at} 4), "
        f"name is object instead of string (1, {at} 6)"
    )
    assert told(run(tmp_path, shared_broker, topic, JSON_FLOW)) == [bad, drifted]
    described = json.loads(run_cli("pipeline", "describe", tmp_path, "--json").out)
    drift = next(each for each in described["flows"][-1]["checks"] if each["kind"] == "drift")
    assert drift["reasons"]["name is object instead of string"] == 1
    assert drift["examples"]["coupon is new"] == f"{topic}-0 at offset 6"
    assert len(shared_broker.records(f"{topic}-out")) == 4
    assert len(shared_broker.records(f"{topic}-dead")) == 4


def test_field_that_was_always_there_and_is_null_is_told_in_the_run_in_which_it_begins(
    tmp_path: Path, spark: Any, shared_broker: Broker, topic: str
) -> None:
    for number in range(NEVER_NULL):
        shared_broker.produce(topic, f'{{"id": {number}, "name": "ann"}}')
    assert told(run(tmp_path, shared_broker, topic, JSON_FLOW)) == []  # the amount was never there
    shared_broker.produce(topic, '{"id": 1, "name": null}')
    shared_broker.produce(topic, '{"id": 2}')
    shared_broker.produce(topic, '{"id": 3, "name": "bob"}')
    sentence = (
        f"name is null or missing in 2 of 3 records, and was in every record before; the first is {topic}-0 at offset "
        f"{NEVER_NULL}"
    )
    assert told(run(tmp_path, shared_broker, topic, JSON_FLOW)) == [sentence]
    shared_broker.produce(topic, '{"id": 4}')
    assert told(run(tmp_path, shared_broker, topic, JSON_FLOW)) == []
    assert f"in all runs of copy: copy: {sentence}" in run_cli("pipeline", "describe", tmp_path).lines


def record(*fields: Any) -> dict[str, Any]:
    named = [{"name": name, "type": kind, **(rest[0] if rest else {})} for name, kind, *rest in fields]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": named}


NOTHING = {"default": None}
NOTE = ("note", ["null", "string"], NOTHING)
OLD = record(("id", "long"), ("name", "string"), NOTE)


def encoded(schema: Any, value: Any, number: int = 1) -> bytes:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, schema, value)
    return b"\0" + number.to_bytes(4, "big") + written.getvalue()


@pytest.mark.parametrize(
    ("writer", "expected"),
    [
        (OLD, None),
        (record(("name", "string"), ("id", "long"), ("note", ["string", "null"])), None),
        (record(*[(each["name"], each["type"]) for each in OLD["fields"]], ("coupon", "string")), "coupon is new"),
        (record(("id", "int"), ("name", "string")), "id is int instead of long, note is gone"),
        (record(("id", "long"), ("name", ["null", "string"]), NOTE), "name is null or string instead of string"),
    ],
)  # fmt: skip
def test_changes_of_a_writers_schema(writer: Any, expected: str | None) -> None:
    assert changed_fields(writer, OLD) == expected


def test_changes_inside_of_records_enums_arrays_and_named_types() -> None:
    def order(*inner: Any, symbols: tuple[str, ...] = ("OPEN",), items: str = "int", name: str = "at") -> dict[str, Any]:
        address = {"type": "record", "name": "Address", "fields": [{"name": each, "type": "string"} for each in inner]}
        status = {"type": "enum", "name": "Status", "symbols": list(symbols)}
        return record(
            ("to", address),
            ("from", ["null", "Address"]),
            ("status", status),
            ("n", {"type": "array", "items": items}),
            (name, "int"),
        )

    reader = order("street")
    reader["fields"][-1]["aliases"] = ["moment"]
    assert changed_fields(order("street", name="moment"), reader) is None
    assert changed_fields(order("street", "city", symbols=("OPEN", "PAUSED"), items="long"), reader) == (
        "from.city is new, n is array of long instead of array of int, status has the new symbol PAUSED, to.city is new"
    )


def test_avro_that_cannot_be_read_says_which_field_changed_and_other_time_units_are_refused() -> None:
    def times(unit: str) -> Any:
        return record(("id", "long"), ("at", {"type": "long", "logicalType": f"timestamp-{unit}"}))

    schemas = {1: times("millis"), 2: times("micros"), 3: record(("id", "string"), ("at", "long")), 4: record(("id", "long"))}
    reader = AvroReader(times("millis"), avro_type(times("millis")), True, schemas.__getitem__)
    values = [encoded(schemas[number], {"id": "x" if number == 3 else 7, "at": 5}, number) for number in schemas]
    found = reader.decode(pa.array(values, pa.binary())).to_pylist()
    assert [row["decoded"] is not None for row in found] == [True, False, False, False]
    units, type_, gone = (row["reason"] for row in found[1:])
    because = "because its writer's schema differs (at is timestamp-micros instead of timestamp-millis)"
    assert units == f"would be read with other times, {because}"
    because = "because its writer's differs (at is long instead of timestamp-millis, id is string instead of long)"
    assert type_ == f"does not fit the Avro schema, {because}"
    assert gone == "does not fit the Avro schema, because its writer's differs (at is gone)"


AVRO_FLOW = """
import json
from ottla.spark import decode
SCHEMAS = json.loads(r'''{schemas}''')
@dp.append_flow(target="out")
def copy():
    orders = decode(
        spark.readStream.table("orders"),
        value="confluent-avro",
        schema=SCHEMAS["1"],
        registry=lambda number: SCHEMAS[str(number)],
        mode="drop",
    )
    return orders.selectExpr("to_json(value) AS value")
"""


def test_avro_of_newer_and_older_writers_is_counted_by_field(
    tmp_path: Path, spark: Any, shared_broker: Broker, topic: str
) -> None:
    schemas = {
        1: OLD,
        2: record(("id", "long"), ("name", "string"), ("note", ["null", "string"], NOTHING), ("coupon", "string")),
        3: record(("id", "int"), ("name", "string")),
        4: record(("id", "long"), ("name", "long")),
    }
    order = {"id": 1, "name": "ann", "note": None, "coupon": "x"}
    for number in (1, 2, 2, 3):
        shared_broker.produce(topic, encoded(schemas[number], order, number))
    shared_broker.produce(topic, encoded(schemas[4], {"id": 1, "name": 5}, 4))
    text = AVRO_FLOW.replace("{schemas}", json.dumps(schemas))
    why = "the value does not fit the Avro schema, because its writer's differs (name is long instead of string, note is gone)"
    at = f"{topic}-0 at offset"
    bad = f"1 of 5 records could not be decoded and was dropped: {why} (1, {at} 4); such as {why}"
    drifted = (
        f"3 of 5 records differ from the schema: coupon is new (2, {at} 2), id is int instead of long (1, {at} 3), "
        f"note is gone (1, {at} 3)"
    )
    assert told(run(tmp_path, shared_broker, topic, text)) == [bad, drifted]
    assert len(shared_broker.records(f"{topic}-out")) == 4
