"""Positions of flows from checkpoints."""

from __future__ import annotations

from pathlib import Path

from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines import storage
from ottla.spark.pipelines.storage import Position, position_of


def write(folder: str, kind: str, batch: int, text: str = "") -> None:
    path = Path(folder) / kind / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_last_committed_batch_is_the_position(tmp_path: Path) -> None:
    spec = write_pipeline(tmp_path, {"a.py": ""})
    assert position_of(spec, "f") is None
    folder = storage.checkpoint(spec, "f")
    write(folder, "offsets", 9, 'v1\n{"batchWatermarkMs": 0}\n{"orders": {"0": 3}}')
    assert position_of(spec, "f") is None
    write(folder, "commits", 9)
    write(folder, "offsets", 10, 'v1\n{"batchWatermarkMs": 0}\n{"orders": {"0": 5, "1": 7}}\n{"logOffset": 2}\n-')
    write(folder, "commits", 10)
    write(folder, "commits", 8)
    assert position_of(spec, "f") == Position(10, ({"orders": {"0": 5, "1": 7}}, {"logOffset": 2}, {}), False)
    write(folder, "offsets", 11)
    found = position_of(spec, "f")
    assert found is not None
    assert found.is_batch_open
    assert found.text() == "orders-0: 5, orders-1: 7"


def test_position_without_partitions_is_its_batch() -> None:
    assert Position(4, ({"logOffset": 2},), False).text() == "batch 4"
