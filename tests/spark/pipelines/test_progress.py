"""Numbers of a flow from Spark's progress reports."""

from __future__ import annotations

from ottla.spark.pipelines.run import FlowProgress, flow_progress, lag_of

REPORT = {
    "batchId": 3,
    "numInputRows": 500,
    "batchDuration": 250,
    "sources": [
        {"endOffset": {"orders": {"0": 5, "1": 5}}, "latestOffset": {"orders": {"0": 9, "1": 5, "2": 2}}},
        {"endOffset": {"logOffset": 3}, "latestOffset": None},
    ],
}


def test_report_becomes_rate_time_and_lag() -> None:
    assert flow_progress("f", REPORT) == FlowProgress("f", 3, 500, 2000.0, 250, 6)
    assert flow_progress("f", None) is None


def test_json_of_a_batch_has_offsets_behind_latest() -> None:
    progress = flow_progress("f", REPORT)
    assert progress is not None
    assert progress.as_json()["offsets_behind_latest"] == {"min": 0, "max": 4, "avg": 2.0}
    assert "lag_by_partition" not in progress.as_json()


def test_report_of_spark_connect_counts_rows_by_source() -> None:
    report = {"batchId": 1, "batchDuration": 100, "sources": [{"numInputRows": 30}, {"numInputRows": 20}, {}]}
    assert flow_progress("f", report) == FlowProgress("f", 1, 50, 500.0, 100, None)


def test_lag_is_unknown_without_offsets_by_partition() -> None:
    assert lag_of([{"endOffset": {"logOffset": 3}, "latestOffset": {"logOffset": 4}}]) is None
    assert lag_of([{"endOffset": '{"a": {"0": 1}}', "latestOffset": '{"a": {"0": 3}}'}]) == {("a", 0): 2}
    assert lag_of([{"endOffset": "-", "latestOffset": None}]) is None
    assert lag_of([{"endOffset": {"a": {"0": 4}}, "latestOffset": {"a": {"0": 3}}}]) == {("a", 0): 0}


def test_batch_without_time_has_no_rate() -> None:
    assert flow_progress("f", {"batchId": 0, "numInputRows": None}) == FlowProgress("f", 0, 0, 0.0, 0, None)
