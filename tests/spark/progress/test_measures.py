"""Progress reports as measures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ottla import TopicPartition
from ottla.spark.progress.measures import (
    Measures,
    SourceMeasures,
    measures_of,
    metrics_dict,
    metrics_text,
    offsets_behind_latest,
    parse_offsets,
)


def report(*sources: Any, **changes: Any) -> Any:
    found = {
        "id": "q",
        "runId": "r",
        "name": None,
        "batchId": 3,
        "numInputRows": 10,
        "processedRowsPerSecond": float("nan"),
        "batchDuration": 250,
        "sources": [SimpleNamespace(endOffset=end, latestOffset=latest) for end, latest in sources],
    }
    return SimpleNamespace(**{**found, **changes})


def test_lag_is_latest_minus_read() -> None:
    found = measures_of(report(('{"orders": {"0": 7, "1": 5}}', '{"orders": {"0": 10, "1": 5, "2": 4}}')))
    assert found.lag_by_partition == {("orders", 0): 3, ("orders", 1): 0, ("orders", 2): 4}
    assert (found.lag, found.name, found.rows_per_second, found.batch_ms) == (7, "q", 0.0, 250)


def test_offsets_behind_latest_are_named_as_spark_names_them() -> None:
    found = offsets_behind_latest(report(('{"t": {"0": 7, "1": 5}}', '{"t": {"0": 10, "1": 5}}'), ('{"logOffset": 3}', None)))
    numbers = {"minOffsetsBehindLatest": "0", "maxOffsetsBehindLatest": "3", "avgOffsetsBehindLatest": "1.5"}
    assert found == [numbers, {}]
    assert offsets_behind_latest(None) == []


def test_two_sources_of_one_partition_count_with_the_smaller_offset() -> None:
    latest = '{"orders": {"0": 10}}'
    found = measures_of(report(('{"orders": {"0": 7}}', latest), ('{"orders": {"0": 4}, "pays": {"1": 2}}', latest)))
    assert found.offsets == {("orders", 0): 4, ("pays", 1): 2}
    assert found.lag == 6


def test_sources_that_are_no_topics_are_left_out() -> None:
    found = measures_of(report(("42", None), ('{"logOffset": 3}', None), (None, None), ('{"t": {"0": 1}}', None)))
    assert [source.ends for source in found.sources] == [{TopicPartition("t", 0): 1}]
    assert found.lag == 0
    for text in ("null", "[]", "{", '{"t": {"x": 1}}', '{"t": {"0": true}}', '{"t": {"0": -1}}'):
        assert parse_offsets(text) == {}


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
