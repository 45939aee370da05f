"""Completion of keywords and names."""

from __future__ import annotations

from ottla.cli.sql.shell import FRESH_S, Completer
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.declarations import Declaration
from ottla.spark.sql.statements import Column


def test_keywords_names_columns_and_topics_are_offered() -> None:
    catalog = Catalog()
    catalog.add(Declaration("sales", "stream", "s", "json", (Column("sum_total", "INT"),)))
    asked: list[int] = []
    clock = [0.0]

    def topics() -> list[str]:
        asked.append(1)
        return ["settled-orders"]

    completer = Completer(catalog, topics, lambda: clock[0])
    assert completer.matches("s") == [
        "select", "stream", "show", "streams", "set", "sum", "string", "struct", "sales", "settled-orders", "sum_total"
    ]  # fmt: skip
    assert completer.matches("SEL") == ["SELECT"]
    assert completer.matches("_off") == ["_offset"]
    assert completer.matches("") == []
    assert len(asked) == 1
    clock[0] = FRESH_S + 1
    assert [completer("settl", state) for state in range(2)] == ["settled-orders", None]
    assert len(asked) == 2


def test_cluster_that_does_not_answer_offers_no_topics() -> None:
    def topics() -> list[str]:
        raise OSError("away")

    assert Completer(Catalog(), topics).matches("SEL") == ["SELECT"]
