"""The console's page of pipelines: runs that tell their flows, and groups that queries report to."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.servers.console_server import RunningConsole, running_console

from ottla import Admin, OffsetAndMetadata
from ottla.spark.pipelines.errors import FlowFailed
from ottla.spark.pipelines.metrics import MetricsPage, RunMetrics
from ottla.spark.pipelines.run import FlowProgress
from ottla.spark.progress.listener import METADATA
from ottla.testing import Broker

HOSTILE = "<script>alert(1)</script>\"'&"


def flow(name: str, reads: list[str], topic: str, target: str) -> dict[str, Any]:
    source = [{"format": "ottla", "options": {"subscribe": topic}}] if topic else []
    sink = {"kind": "sink", "target": target, "format": "ottla", "options": {"topic": target}}
    return {"flow": name, "reads": reads, "sources": source, **sink}


@pytest.fixture(scope="module")
def metrics() -> RunMetrics:
    found = RunMetrics(f"shop{HOSTILE}")
    totals = SimpleNamespace(rows={"clean": 30}, batches={"clean": 4}, checks={})
    found.follow(SimpleNamespace(flow_names=["clean"], view_names=set(), totals=totals, is_running=True))  # type: ignore[arg-type]
    found.show([flow("clean", [], "orders", "cleaned"), flow(f"sum{HOSTILE}", ["cleaned"], "", "totals")])
    found.take(FlowProgress("clean", 3, 10, 40.0, 250, 5, {}))
    found.broke(FlowFailed("clean", "flow clean broke", "java.io.IOException: disk"))
    return found


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def console(broker: Broker, metrics: RunMetrics) -> Iterator[RunningConsole]:
    with (
        MetricsPage(metrics, "127.0.0.1", 0) as page,
        running_console(broker.bootstrap_servers, pipelines=(page.address, "http://127.0.0.1:9")) as running,
    ):
        yield running


def test_runs_are_shown_with_a_picture(console: RunningConsole) -> None:
    run, gone = console.api("/pipelines")["runs"]
    assert (run["pipeline"], run["is_ready"], run["failure"]) == (f"shop{HOSTILE}", True, "")
    first, second = run["flows"]
    assert (first["flow"], first["reads"], first["writes"], first["lag"]) == ("clean", ["topic orders"], "topic cleaned", 5)
    assert (first["rate"], first["batch_s"], first["error"]) == (40.0, 0.25, "java.io.IOException")
    assert (second["reads"], second["lag"]) == (["cleaned"], None)
    assert "does not answer" in gone["failure"]
    page = console.page("/pipelines")
    assert "<script>alert" not in page
    assert '<svg class="flows"' in page
    assert page.count('class="edge"') == 4  # two flows, each with what it reads and writes


def test_groups_that_queries_report_to_are_found(console: RunningConsole, broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics({"reported": 1}).raise_first()
        spark, other = OffsetAndMetadata(0, METADATA), OffsetAndMetadata(0, "by hand")
        admin.alter_consumer_group_offsets("query", {("reported", 0): spark}).raise_first()
        admin.alter_consumer_group_offsets("by-hand", {("reported", 0): other}).raise_first()
    broker.produce("reported", "v")
    with running_console(broker.bootstrap_servers) as console:
        (group,) = console.api("/pipelines")["groups"]
        assert (group["name"], group["topics"], group["lag"]) == ("query", ["reported"], 1)
        assert "group query" in console.page("/pipelines")


def test_page_without_a_pipeline_says_how_to_have_one() -> None:
    with Broker() as broker, running_console(broker.bootstrap_servers) as console:
        assert "No pipeline is known" in console.page("/pipelines")
