"""Columns of a result."""

from __future__ import annotations

from types import SimpleNamespace

from ottla.spark.sql.screen import Shown, shown_columns


def test_columns_have_names_and_kinds() -> None:
    field = SimpleNamespace(name="at", dataType=SimpleNamespace(typeName=lambda: "timestamp"))
    assert shown_columns(SimpleNamespace(schema=SimpleNamespace(fields=[field]))) == [Shown("at", "timestamp")]
