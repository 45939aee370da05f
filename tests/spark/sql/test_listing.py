"""Rows of SHOW, DESCRIBE and SET."""

from __future__ import annotations

from ottla.spark.sql import listing
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.declarations import Declaration, undeclared
from ottla.spark.sql.settings import Settings
from ottla.spark.sql.statements import Column

ORDERS = Declaration("o", "stream", "orders", "json", (Column("id", "BIGINT"), Column("n", "INT")), "id")
AVRO = Declaration("a", "table", "avro", "avro", schema={"type": "record", "fields": [{"name": "x", "type": "int"}]})


def catalog() -> Catalog:
    made = Catalog()
    made.add(ORDERS)
    made.add(AVRO)
    return made


def test_topics_have_the_names_they_are_declared_under() -> None:
    columns, rows = listing.topics({"orders": 3, "b": 1}, catalog())
    assert [each.name for each in columns] == ["Topic", "Partitions", "Declared as"]
    assert rows == [("b", 1, ""), ("orders", 3, "o")]


def test_streams_and_tables_are_listed_apart() -> None:
    assert listing.declarations(catalog(), "stream")[1] == [("o", "orders", "json", "id BIGINT, n INT")]
    assert listing.declarations(catalog(), "table")[1] == [("a", "avro", "avro", "x")]


def test_description_has_columns_key_and_metadata() -> None:
    _, rows, notes = listing.described(ORDERS)
    assert rows[:2] == [("id", "BIGINT", "key"), ("n", "INT", "")]
    assert ("_offset", "BIGINT", "of every record") in rows
    assert notes == ["o is a stream over the topic orders, in the format json"]
    assert listing.described(AVRO)[1][0] == ("x", "(Avro)", "")
    assert "latest value of each key" in listing.described(AVRO)[2][1]
    assert "without a declaration" in listing.described(undeclared("t"))[2][0]


def test_settings_show_defaults_and_what_is_set() -> None:
    settings = Settings({}, {"bad.records": "fail"})
    assert listing.settings(settings, None)[1] == [
        ("auto.offset.reset", "latest", "default; earliest or latest"),
        ("bad.records", "fail", ""),
    ]
    assert listing.settings(settings, "kafka.client.id")[1] == []
