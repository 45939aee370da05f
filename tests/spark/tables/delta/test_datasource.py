"""`format("ottla_delta")` on real Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest


def test_a_batch_that_spark_replays_is_stored_once(stream_with_replay: Callable[..., None], tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    stream_with_replay("ottla_delta", {"path": str(tmp_path / "table"), "partitionBy": "city"})
    rows = deltalake.DeltaTable(tmp_path / "table").to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["city"]) for row in rows) == [(1, "c1"), (2, "c0"), (3, "c1"), (4, "c0")]
    assert {row["at"] for row in rows} == {datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}
