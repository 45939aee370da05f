"""Statements on Spark, against a broker."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.spark.sql.conftest import Sql

from ottla import Producer
from ottla.schemas import AvroDeserializer, AvroSerializer, Schema, SchemaRegistry
from ottla.spark.sql.errors import SqlError, spark_sentence
from ottla.testing import Broker


def test_declared_stream_is_queried_with_its_types_and_bad_records_are_told(sql: Any, topic: str) -> None:
    sql.send(topic, ("a", '{"id": 1, "amount": 1.5}'), ("b", '{"id": 2, "amount": 2}'), ("b", "broken"))
    sql(f"CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (topic='{topic}', format='json')")
    assert sql("SELECT sum(a.amount), max(b.id) FROM orders a JOIN orders b ON a.id = b.id") == [(3.5, 2)]
    assert sql("SELECT * FROM orders ORDER BY id") == [(1, 1.5), (2, 2.0)]
    assert sql.screen.columns == ["id", "amount"]
    assert sql.screen.notes == [f"2 rows; {topic} from earliest to latest"]
    assert "1 record of orders did not fit the columns and was left out" in sql.screen.warnings[0]
    [(reason, key)] = sql("SELECT _error, _key FROM orders WHERE _error IS NOT NULL")
    assert reason == "the value is not valid JSON: broken"
    assert bytes(key) == b"b"
    assert sql.screen.warnings == []
    sql("SET 'bad.records'='fail'")
    with pytest.raises(Exception, match="cannot be decoded") as raised:
        sql("SELECT * FROM orders")
    assert "cannot be decoded: the value is not valid JSON: broken" in spark_sentence(raised.value)


def test_topic_without_declaration_shows_text_and_places(sql: Any, topic: str) -> None:
    sql.send(topic, ("k", "v1"), (None, None))
    rows = sql(f"SELECT key, value, topic FROM {topic} ORDER BY value NULLS LAST")
    assert rows == [("k", "v1", topic), (None, None, topic)]
    sql(f"SELECT *, _offset FROM `{topic}` LIMIT 1")
    assert sql.screen.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "_offset"]


def test_table_has_the_latest_value_of_each_key(sql: Any, topic: str) -> None:
    pairs = [("1", '{"name": "ann"}'), ("2", '{"name": "bob"}'), ("1", '{"name": "anna"}'), ("3", "{}"), ("2", None)]
    sql.send(topic, *pairs, (None, '{"name": "nobody"}'))
    sql(f"CREATE TABLE users (id INT, name STRING) WITH (topic='{topic}', format='json', key='id')")
    assert sql("SELECT * FROM users ORDER BY id") == [(1, "anna"), (3, None)]
    sql("CREATE TEMPORARY VIEW named AS SELECT name, _offset FROM users WHERE name IS NOT NULL")
    assert [row[0] for row in sql("SELECT * FROM named")] == ["anna"]


def test_inserted_rows_are_records_in_the_declared_format(sql: Any, topic: str) -> None:
    sql(f"CREATE STREAM o (id BIGINT, amount DECIMAL(6,2)) WITH (topic='{topic}', format='json', key='id')")
    sql("INSERT INTO o VALUES (1, 9.5), (2, NULL)")
    assert sql.screen.notes == [f"2 rows written to the topic {topic}"]
    sql("INSERT INTO o (amount, id) SELECT amount * 2, id + 10 FROM o WHERE amount IS NOT NULL")
    found = {bytes(each.key): json.loads(each.value) for each in sql.broker.records(topic)}
    assert found == {b"1": {"id": 1, "amount": 9.5}, b"2": {"id": 2, "amount": None}, b"11": {"id": 11, "amount": 19.0}}
    sql(f"INSERT INTO {topic} VALUES ('k', 'text')")
    assert (b"k", b"text") in {(each.key, each.value) for each in sql.broker.records(topic)}
    for statement, words in {
        "INSERT INTO o VALUES (1)": "1 values in a row for 2 columns",
        "INSERT INTO o (id, amout) VALUES (1, 2)": "did you mean amount?",
        "INSERT INTO o (amount) VALUES (1)": "leaves out id, the record's key",
    }.items():
        with pytest.raises(SqlError) as raised:
            sql(statement)
        assert words in str(raised.value)


def test_live_query_shows_rows_until_its_limit_and_updates_of_groups(sql: Any, topic: str) -> None:
    sql.send(topic, ("a", '{"kind": "x"}'), ("b", '{"kind": "y"}'))
    sql(f"CREATE STREAM e (kind STRING) WITH (topic='{topic}', format='json')")
    sql("SET 'auto.offset.reset'='earliest'")
    assert sorted(sql("SELECT kind FROM e EMIT CHANGES LIMIT 2")) == [("x",), ("y",)]
    assert sql.screen.notes == [f"{topic} from earliest on; Ctrl-C ends it"]
    sql.screen.on_batch = lambda number: sql.send(topic, ("a", '{"kind": "x"}')) if number == 0 else None
    rows = sql("SELECT kind, count(*) AS n FROM e GROUP BY kind EMIT CHANGES LIMIT 3")
    assert rows[-1] == ("x", 2)
    with pytest.raises(Exception, match="Sorting") as raised:
        sql("SELECT kind FROM e ORDER BY kind EMIT CHANGES")
    assert spark_sentence(raised.value) == "a live result cannot be sorted: leave ORDER BY or EMIT CHANGES out"
    sql(f"CREATE TABLE t (kind STRING) WITH (topic='{topic}', format='json')")
    with pytest.raises(SqlError, match="would count its changes"):
        sql("SELECT count(*) FROM t EMIT CHANGES")
    with pytest.raises(SqlError, match="the query reads none"):
        sql("SELECT 1 EMIT CHANGES")


def test_create_stream_as_select_runs_until_terminated(sql: Any, topic: str) -> None:
    sql.send(topic, ("a", '{"n": 1}'), ("b", '{"n": 20}'))
    sql(f"CREATE STREAM n (n INT) WITH (topic='{topic}', format='json'); SET 'auto.offset.reset'='earliest'")
    sql(f"CREATE STREAM big WITH (topic='{topic}-big', format='json') AS SELECT n, n * 2 AS twice FROM n WHERE n > 10")
    assert sql("SELECT n, twice FROM big EMIT CHANGES LIMIT 1") == [(20, 40)]
    [(name, state, _, text)] = sql("SHOW QUERIES")
    assert (name, state) == ("query_1", "running")
    assert text.startswith("SELECT n, n * 2")
    sql("TERMINATE ALL")
    assert sql("SHOW QUERIES") == []
    assert sql.runner.cluster.topics()[f"{topic}-big"] == 3


def test_errors_of_spark_are_a_sentence_and_a_place(sql: Any, topic: str) -> None:
    for statement, expected in {
        f"SELECT kee FROM {topic}": "line 1, column 8: near 'kee FROM",
        "SELECT 1 +": "Syntax error at or near end of input.\nline 1, column 11: at the end of the line",
        "SELECT a\nFROM range(3)": "line 1, column 8: near 'a'",
    }.items():
        with pytest.raises(Exception, match="SQLSTATE") as raised:
            sql(statement)
        assert expected in spark_sentence(raised.value, statement)
        assert len(spark_sentence(raised.value, statement).splitlines()) == 2


def test_settings_of_spark_reach_the_session(sql: Any, spark: Any) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        assert sql("SELECT 1 AS one") == [(1,)]
        sql("SET spark.sql.shuffle.partitions=5")
        assert spark.conf.get("spark.sql.shuffle.partitions") == "5"
        sql.screen.rows_max = 2
        assert len(sql("SELECT * FROM range(5)")) == 2
        assert "only the first 2 rows" in sql.screen.warnings[0]
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
SHIPMENT = {
    "type": "record",
    "name": "Shipment",
    "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}, {"name": "weight", "type": "double"}],
}
BLOCK = re.compile(r"```sql\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


@pytest.mark.slow
def test_every_block_of_the_page_works(spark: Any) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    compared = 0
    with Broker() as broker:
        sql = Sql(spark, broker)
        broker.create_topic("customers_raw", partitions=1)
        sql.send("customers_raw", ("ann", "Oslo"))
        broker.create_topic("shipments")
        SchemaRegistry(broker.schema_registry_url).register("shipments-value", Schema(json.dumps(SHIPMENT)))
        sql(f"SET 'schema.registry.url'='{broker.schema_registry_url}'")
        for block, shown in blocks:
            rows = sql(block)
            assert sql.screen.warnings == []
            if shown:
                heading, *lines = shown.splitlines()
                assert sql.screen.columns == heading.split()
                assert [" ".join(line.split()) for line in lines] == [" ".join(map(str, row)) for row in rows]
                compared += 1
        sql.runner.close()
    assert (len(blocks), compared) == (8, 4)
    spark.conf.set("spark.sql.shuffle.partitions", "2")


def test_columns_of_a_stream_come_from_the_schema_registry(sql: Any, topic: str, shared_broker: Broker) -> None:
    url = shared_broker.schema_registry_url
    schema = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}]}
    registry = SchemaRegistry(url)
    registry.register(f"{topic}-value", Schema(json.dumps(schema)))
    with pytest.raises(SqlError, match=r"is Avro: name the schema registry with SET 'schema\.registry\.url'"):
        sql(f"CREATE STREAM o WITH (topic='{topic}', format='avro')")
    with pytest.raises(SqlError, match="'localhost' is no address of a schema registry"):
        sql("SET 'schema.registry.url'='localhost'")
    sql(f"SET 'schema.registry.url'='{url}'")
    with pytest.raises(SqlError, match=r"stream x has no columns: subject no-such-value has no schema to read with"):
        sql("CREATE STREAM x WITH (topic='no-such', format='avro')")
    sql(f"CREATE STREAM o WITH (topic='{topic}', format='avro', key='id')")
    sql("INSERT INTO o VALUES (1, 'Oslo'), (2, 'Rome')")
    assert sql("SELECT city, id FROM o ORDER BY id") == [("Oslo", 1), ("Rome", 2)]
    values = [AvroDeserializer(url).deserialize(topic, (), each.value) for each in sql.broker.records(topic)]
    assert sorted(each["city"] for each in values) == ["Oslo", "Rome"]
    later = {**schema, "fields": [*schema["fields"], {"name": "note", "type": "string", "default": ""}]}
    with Producer(shared_broker.bootstrap_servers, value_serializer=AvroSerializer(url, later)) as producer:
        producer.send(topic, {"id": 3, "city": "Bonn", "note": "n"}).result(30)
    assert sql("SELECT * FROM o WHERE id = 3") == [(3, "Bonn")], "with the columns that were declared"
    sql(f"CREATE OR REPLACE STREAM o WITH (topic='{topic}', format='avro')")
    assert sql("SELECT * FROM o WHERE id = 3") == [(3, "Bonn", "n")]
