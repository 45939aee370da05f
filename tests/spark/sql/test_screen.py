"""Columns of a result."""

from __future__ import annotations

from types import SimpleNamespace

from ottla.spark.sql import screen
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.declarations import Declaration, undeclared
from ottla.spark.sql.screen import Shown, shown_columns
from ottla.spark.sql.settings import Settings
from ottla.spark.sql.statements import Column


def test_columns_have_names_and_kinds() -> None:
    field = SimpleNamespace(name="at", dataType=SimpleNamespace(typeName=lambda: "timestamp"))
    assert shown_columns(SimpleNamespace(schema=SimpleNamespace(fields=[field]))) == [Shown("at", "timestamp")]


ORDERS = Declaration("o", "stream", "orders", "json", (Column("id", "BIGINT"), Column("n", "INT")), "id")
AVRO = Declaration("a", "table", "avro", "avro", schema={"type": "record", "fields": [{"name": "x", "type": "int"}]})


def catalog() -> Catalog:
    made = Catalog()
    made.add(ORDERS)
    made.add(AVRO)
    return made


def test_topics_have_the_names_they_are_declared_under() -> None:
    columns, rows = screen.topic_rows({"orders": 3, "b": 1}, catalog())
    assert [each.name for each in columns] == ["Topic", "Partitions", "Declared as"]
    assert rows == [("b", 1, ""), ("orders", 3, "o")]


def test_streams_and_tables_are_listed_apart() -> None:
    assert screen.declaration_rows(catalog(), "stream")[1] == [("o", "orders", "json", "id BIGINT, n INT")]
    assert screen.declaration_rows(catalog(), "table")[1] == [("a", "avro", "avro", "x")]


def test_description_has_columns_key_and_metadata() -> None:
    _, rows, notes = screen.described_rows(ORDERS)
    assert rows[:2] == [("id", "BIGINT", "key"), ("n", "INT", "")]
    assert ("_offset", "BIGINT", "of every record") in rows
    assert notes == ["o is a stream over the topic orders, in the format json"]
    assert screen.described_rows(AVRO)[1][0] == ("x", "(Avro)", "")
    assert "latest value of each key" in screen.described_rows(AVRO)[2][1]
    assert "without a declaration" in screen.described_rows(undeclared("t"))[2][0]


def test_settings_show_defaults_and_what_is_set() -> None:
    settings = Settings({}, {"bad.records": "fail"})
    assert screen.setting_rows(settings, None)[1] == [
        ("auto.offset.reset", "latest", "default; earliest or latest"),
        ("bad.records", "fail", ""),
    ]
    assert screen.setting_rows(settings, "kafka.client.id")[1] == []
