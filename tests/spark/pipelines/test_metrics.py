"""The metrics page of a run."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.servers.ottla_cli import run_cli

from ottla import TopicPartition
from ottla.spark.pipelines.counts import DEAD_LETTER, DECODE, EXPECT, WARN, Check
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.metrics import MetricsPage, RunMetrics
from ottla.spark.pipelines.run import FlowProgress

LAGS = {TopicPartition("orders", 0): 1, TopicPartition("orders", 1): 4}
BATCH = FlowProgress("keep", 3, 10, 40.0, 250, 5, LAGS)


def followed() -> tuple[RunMetrics, Any]:
    letters = Check("parsed", DECODE, "", DEAD_LETTER, 10, 2, topic="dead")
    kept = Check("total", EXPECT, "is positive", WARN, 3, 1)
    totals = SimpleNamespace(
        rows={"keep": 30},
        batches={"keep": 4},
        checks={"keep": {letters.key: letters}, "total": {kept.key: kept}},
    )
    run = SimpleNamespace(flow_names=["keep", "new", "total"], view_names={"total"}, totals=totals, is_running=True)
    metrics = RunMetrics("shop")
    metrics.follow(run)  # type: ignore[arg-type]  # what it reads of a Run
    metrics.take(BATCH)
    return metrics, run


def test_flows_say_what_they_read_and_write_and_how_they_broke() -> None:
    metrics, _ = followed()
    source = {"format": "ottla", "options": {"subscribe": "orders"}}
    sink = {"kind": "sink", "target": "out", "format": "ottla", "options": {"topic": "kept"}}
    metrics.show([{"flow": "keep", "reads": ["parsed"], "sources": [source], **sink}])
    metrics.broke(FlowFailed("keep", "flow keep: '4711' cannot be cast", "[CAST_INVALID_INPUT] The value '4711' …"))
    with MetricsPage(metrics, "127.0.0.1", 0) as page, urllib.request.urlopen(f"{page.address}/flows") as answer:
        found = json.load(answer)
    (flow,) = found["flows"]
    assert (found["pipeline"], found["isReady"]) == ("shop", True)
    assert (flow["reads"], flow["writes"]) == (["parsed", "topic orders"], "topic kept")
    assert (flow["rows"], flow["lag"], flow["lagByTopic"]) == (30, 5, {"orders": 5})
    assert flow["lastError"] == "CAST_INVALID_INPUT"  # without the value
    assert "4711" not in json.dumps(found)


def test_page_has_rows_lag_bad_rows_dead_letters_and_restarts() -> None:
    metrics, run = followed()
    metrics.follow(run)
    lines = metrics.text().decode().splitlines()
    checked = 'flow="keep",at="parsed",check="decode",name="",action="dead letter"'
    for line in (
        'ottla_pipeline_info{pipeline="shop"} 1',
        "ottla_pipeline_restarts_total 1",
        'ottla_pipeline_rows_total{flow="keep"} 30',
        'ottla_pipeline_rows_total{flow="new"} 0',
        'ottla_pipeline_rows_per_second{flow="keep"} 40.0',
        'ottla_pipeline_batch_seconds{flow="keep"} 0.25',
        'ottla_pipeline_lag_records{flow="keep",topic="orders",partition="1"} 4',
        'ottla_pipeline_offsets_behind_latest_max{flow="keep"} 4',
        'ottla_pipeline_offsets_behind_latest_avg{flow="keep"} 2.5',
        f"ottla_pipeline_checked_rows_total{{{checked}}} 10",
        f"ottla_pipeline_bad_rows_total{{{checked}}} 2",
        'ottla_pipeline_dead_letters_total{flow="keep",topic="dead"} 2',
    ):
        assert line in lines
    # The counts of a materialized view are replaced each time: no counter has them.
    assert [line for line in lines if 'at="total"' in line] == [
        'ottla_pipeline_view_bad_rows{flow="total",at="total",check="expect",name="is positive",action="warn"} 1'
    ]


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_page_is_served_and_ready_only_while_flows_run() -> None:
    metrics, run = followed()
    with MetricsPage(RunMetrics("shop"), "127.0.0.1", 0) as early, MetricsPage(metrics, "127.0.0.1", 0) as page:
        assert [status(f"{early.address}/{path}") for path in ("metrics", "health", "ready")] == [200, 200, 503]
        assert [status(f"{page.address}/{path}") for path in ("metrics", "health", "ready", "x")] == [200, 200, 200, 404]
        run.is_running = False
        assert status(f"{page.address}/ready") == 503


def test_port_that_is_taken_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PipelineError, match=rf"cannot be served at 127.0.0.1:{port}: Address already in use; choose"):
            MetricsPage(RunMetrics("shop"), "127.0.0.1", port)
    assert "x is no port: write 9464" in run_cli("pipeline", "run", "--metrics-port", "x").err
