"""Measures as a dict and as Prometheus's text."""

from __future__ import annotations

from ottla import TopicPartition
from ottla.spark.progress.measures import Measures, SourceMeasures, metrics_dict, metrics_text

ONE = Measures(
    "id-1",
    "run-1",
    "orders",
    4,
    100,
    250.5,
    400,
    (SourceMeasures({TopicPartition("orders", 0): 5}, {TopicPartition("orders", 0): 8}),),
)


def test_the_dict_has_each_query_by_its_name() -> None:
    found = metrics_dict([ONE], {"id-1": 900}, 2)
    assert found["commit_failures"] == 2
    assert found["queries"]["orders"] == {
        "query_id": "id-1",
        "batch_id": 4,
        "batch_rows": 100,
        "batch_seconds": 0.4,
        "rows_per_second": 250.5,
        "rows_total": 900,
        "lag": 3,
        "offsets_behind_latest": {"min": 3, "max": 3, "avg": 3.0},
        "lag_by_partition": {"orders-0": 3},
    }


def test_the_text_is_prometheus() -> None:
    lines = metrics_text([ONE], {"id-1": 900}, 2).decode().splitlines()
    assert 'ottla_query_lag_records{query="orders",topic="orders",partition="0"} 3' in lines
    assert 'ottla_query_rows_total{query="orders"} 900' in lines
    assert 'ottla_query_batch_seconds{query="orders"} 0.4' in lines
    assert 'ottla_query_offsets_behind_latest_avg{query="orders"} 3.0' in lines
    assert "ottla_query_commit_failures_total 2" in lines
