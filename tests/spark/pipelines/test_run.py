"""Runs of pipelines: once, again, on and on, broken and stopped."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.spark.pipelines.folders import write_pipeline

from ottla.spark.pipelines import storage
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.graph import FlowDefinition
from ottla.spark.pipelines.resolution import prepared
from ottla.spark.pipelines.run import STARTING_MAX, FlowProgress, Run, Totals, flow_progress, lag_of
from ottla.spark.pipelines.spec import Schedule, Spec
from ottla.testing import Broker

OTTLA = """
sources: {{orders: {{subscribe: {topic}, startingOffsets: earliest}}}}
sinks: {{copies: {{topic: {topic}-copies}}}}
"""
COPY = """
@dp.append_flow(target="copies")
def copy():
    return spark.readStream.table("orders").select("key", "value")
"""
FLOWS = 5
COUNT = "CREATE STREAMING TABLE kept AS SELECT CAST(CAST(value AS STRING) AS INT) AS n FROM STREAM orders;"
SUM = "CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS n FROM kept;"


@pytest.fixture
def pipeline(tmp_path: Path, topic: str, shared_broker: Broker) -> Callable[[dict[str, str]], Spec]:
    shared_broker.create_topic(f"{topic}-copies")
    servers = shared_broker.bootstrap_servers
    return lambda files: write_pipeline(tmp_path, files, OTTLA.format(topic=topic), servers)


def run(
    spec: Spec, spark: Any, schedule: Schedule | None = None, report: Callable[[FlowProgress, Run], None] | None = None
) -> Totals:
    with prepared(spec, spark) as resolved:
        made = Run(resolved, spark, schedule or Schedule(), lambda progress: report(progress, made) if report else None)
        timer = threading.Timer(120, made.stop)
        timer.start()
        try:
            return made.run()
        finally:
            timer.cancel()


def test_second_run_continues_and_tables_keep_their_rows(
    pipeline: Callable[[dict[str, str]], Spec], spark: Any, topic: str, shared_broker: Broker
) -> None:
    spec = pipeline({"count.sql": COUNT + SUM})
    for number in range(3):
        shared_broker.produce(topic, str(number))
    totals = run(spec, spark)
    assert (totals.rows, totals.lag["kept"]) == ({"kept": 3, "total": 1}, 0)
    shared_broker.produce(topic, "10")
    assert run(spec, spark).rows == {"kept": 1, "total": 1}
    with prepared(spec, spark):
        assert [row.n for row in spark.table("total").collect()] == [13]


def test_flows_do_not_start_all_at_once(pipeline: Callable[[dict[str, str]], Spec], spark: Any) -> None:
    """Five that did broke on a busy machine: Spark's Python processes must connect within 10 s."""
    found: list[int] = []

    class Watched(Run):
        def _start(self, flow: FlowDefinition) -> None:
            super()._start(flow)
            found.append(self.starting)
            if len(found) == FLOWS:
                self.stop()

    flows = (COUNT.replace("kept", f"kept{number}") for number in range(FLOWS))
    with prepared(pipeline({f"count{number}.sql": text for number, text in enumerate(flows)}), spark) as resolved:
        made = Watched(resolved, spark, Schedule("every", 0.2))
        made.run()
    assert len(found) == FLOWS
    assert max(found) <= STARTING_MAX


def test_broken_flow_is_named_with_its_records_and_line(
    pipeline: Callable[[dict[str, str]], Spec], spark: Any, topic: str, shared_broker: Broker
) -> None:
    broken = """
from pyspark.sql.functions import udf
@dp.append_flow(target="copies")
def divide():
    parts = udf(lambda value: str(1 // int(value)))
    return spark.readStream.table("orders").select(parts("value").alias("value"))
"""
    shared_broker.produce(topic, "0", partition=1)
    with pytest.raises(FlowFailed) as raised:
        run(pipeline({"a.py": broken}), spark)
    assert str(raised.value) == (
        f"the flow divide broke at {topic}-1 offset 0: ZeroDivisionError: integer division or modulo by zero "
        "(transformations/a.py line 8)"
    )
    assert "=== Streaming Query ===" in raised.value.trace


SLOW_ONCE = """
from pathlib import Path
from pyspark.sql.functions import udf

@udf("int")
def divide(value):
    marker = Path({marker!r})
    if not marker.exists():
        marker.touch()
        raise RuntimeError("Python worker failed to connect back")
    return int(value)

@dp.append_flow(target="copies")
def copy():
    return spark.readStream.table("orders").select("key", divide("value").cast("string").alias("value"))
"""


@pytest.mark.parametrize("schedule", [Schedule(), Schedule("every", 1)], ids=str)
def test_flow_whose_python_process_starts_too_late_is_started_again(
    pipeline: Callable[[dict[str, str]], Spec],
    spark: Any,
    topic: str,
    shared_broker: Broker,
    tmp_path: Path,
    schedule: Schedule,
) -> None:
    """The error is Spark's own text, raised by the flow: what a busy machine does at will cannot be made to happen."""
    spec = pipeline({"disk.py": SLOW_ONCE.format(marker=str(tmp_path / "tried"))})
    shared_broker.produce(topic, "6")
    notices: list[str] = []
    with prepared(spec, spark) as resolved:
        made = Run(resolved, spark, schedule, lambda progress: made.stop(), notice=notices.append)
        timer = threading.Timer(120, made.stop)
        timer.start()
        try:
            totals = made.run()
        finally:
            timer.cancel()
    assert totals.rows == {"copy": 1}
    (notice,) = notices
    assert notice.startswith("the flow copy starts again")
    assert [record.value for record in shared_broker.records(f"{topic}-copies")] == [b"6"]


@pytest.mark.slow
def test_every_looks_again_until_it_is_stopped(
    pipeline: Callable[[dict[str, str]], Spec], spark: Any, topic: str, shared_broker: Broker
) -> None:
    def on_batch(progress: FlowProgress, made: Run) -> None:
        if progress.flow == "copy" and progress.rows == 1:
            shared_broker.produce(topic, "second") if progress.batch == 0 else made.stop()

    shared_broker.produce(topic, "first")
    totals = run(pipeline({"disk.py": COPY}), spark, Schedule("every", 0.5), on_batch)
    assert totals.rows == {"copy": 2}
    assert sorted(each.value for each in shared_broker.records(f"{topic}-copies")) == [b"first", b"second"]
    assert not spark.streams.active


@pytest.mark.slow
def test_continuous_run_computes_views_again(
    pipeline: Callable[[dict[str, str]], Spec], spark: Any, topic: str, shared_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.spark.pipelines.run.REFRESH_S", 0.5)
    seen: list[int] = []

    def on_batch(progress: FlowProgress, made: Run) -> None:
        if progress.flow == "total":
            seen.extend(row.n or 0 for row in spark.table("total").collect())
            if seen[-1] == 5 and len(shared_broker.records(topic)) == 1:
                shared_broker.produce(topic, "6")
            elif seen[-1] == 11:
                made.stop()

    shared_broker.produce(topic, "5")
    run(pipeline({"count.sql": COUNT + SUM}), spark, Schedule("continuous"), on_batch)
    assert seen[-1] == 11


@pytest.mark.slow
def test_flow_settings_hold_while_it_starts_only(
    pipeline: Callable[[dict[str, str]], Spec], spark: Any, topic: str, shared_broker: Broker
) -> None:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    text = COPY.replace(
        'target="copies"', 'target="copies", spark_conf={"spark.sql.shuffle.partitions": "1", "ottla.outputMode": "update"}'
    )
    shared_broker.produce(topic, "1")
    spec = replace(pipeline({"a.py": text}), name="other")
    assert run(spec, spark).rows == {"copy": 1}
    assert spark.conf.get("spark.sql.shuffle.partitions") == before
    assert [each.value for each in shared_broker.records(f"{topic}-copies")] == [b"1"]


@pytest.mark.slow
def test_renamed_flow_into_a_table_with_rows_is_refused(
    pipeline: Callable[[dict[str, str]], Spec], spark: Any, topic: str, shared_broker: Broker
) -> None:
    """Spark counts the new flow's batches from 0, and takes those that the table has for written: their rows were lost."""
    table = "CREATE STREAMING TABLE kept;"
    flow = "CREATE FLOW {} AS INSERT INTO kept BY NAME SELECT CAST(value AS STRING) AS v FROM STREAM orders;"
    for number in range(2):
        shared_broker.produce(topic, str(number))
        run(pipeline({"count.sql": table + flow.format("fill")}), spark)
    shared_broker.produce(topic, "2")
    renamed = pipeline({"count.sql": table + flow.format("fill_again")})
    with pytest.raises(PipelineError, match="the table kept has batches up to 1, and the flow fill_again none"):
        run(renamed, spark)
    shutil.rmtree(Path(storage.checkpoint(renamed, "fill")))  # as after a --reset that was interrupted
    with pytest.raises(PipelineError, match="the table kept has batches up to 1, and the flow fill none"):
        run(pipeline({"count.sql": table + flow.format("fill")}), spark)


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
