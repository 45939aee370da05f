"""`format("ottla_iceberg")` on real Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_batch_that_spark_replays_is_stored_once(stream_with_replay: Callable[..., None], tmp_path: Path) -> None:
    catalogs = pytest.importorskip("pyiceberg.catalog")
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    options = {f"catalog.{name}": value for name, value in properties.items()}
    stream_with_replay("ottla_iceberg", {**options, "table": "shop.orders", "partitionBy": "city"})
    table = catalogs.load_catalog("default", **properties).load_table("shop.orders")
    rows = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["city"]) for row in rows) == [(1, "c1"), (2, "c0"), (3, "c1"), (4, "c0")]
    assert {row["at"] for row in rows} == {datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}
