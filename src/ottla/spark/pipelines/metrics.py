"""The metrics page of a run: `RunMetrics` keeps the numbers, `MetricsPage` serves them over HTTP in a thread of its own.

    GET /metrics   Prometheus's text
    GET /health    200 while the process answers
    GET /ready     200 while the flows run; 503 while Spark starts, brokers are waited for, or the run stops
    GET /flows     JSON: what each flow reads and writes, its last batch, its lag by topic, and how it broke last

The thread of the run writes and the threads of the server read: what they share is replaced or copied, never iterated.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING

from ottla.metrics_text import CONTENT_TYPE, MetricsText
from ottla.spark.pipelines.counts import DEAD_LETTER, Check
from ottla.spark.pipelines.errors import FlowFailed, PipelineError
from ottla.spark.pipelines.outline import Flow, edges
from ottla.spark.pipelines.run import FlowProgress
from ottla.spark.progress.measures import BEHIND_WORDS, behind_latest

if TYPE_CHECKING:
    from ottla.spark.pipelines.run import Run

REQUEST_TIMEOUT_S = 10.0
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]")
"""Spark's name of an error: `[CAST_INVALID_INPUT]`."""
_EXCEPTION = re.compile(r"\b((?:\w+\.)*\w+(?:Exception|Error))\b")


class RunMetrics:
    """The numbers of one process that runs a pipeline, over the restarts of its flows."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._begin_s = time.time()
        self._run: Run | None = None
        self._newest: dict[str, FlowProgress] = {}
        self._ended_s: dict[str, float] = {}
        self._restarts = -1
        self._flows: list[Flow] = []
        self._errors: dict[str, tuple[float, str]] = {}

    def show(self, flows: list[Flow]) -> None:
        """The flows, with what they read and write."""
        self._flows = flows

    def broke(self, failure: FlowFailed) -> None:
        """A flow has broken. Only the kind of error is counted: its text may have data in it."""
        found = _CONDITION.search(str(failure)) or _CONDITION.search(failure.trace) or _EXCEPTION.search(failure.trace)
        self._errors[failure.flow or ""] = time.time(), found[1] if found is not None else "an error"

    def follow(self, run: Run) -> None:
        """Take the numbers of this run; one after the first is a restart."""
        self._run = run
        self._restarts += 1

    def take(self, progress: FlowProgress) -> None:
        """Take a batch."""
        self._newest[progress.flow] = progress
        self._ended_s[progress.flow] = time.time()

    @property
    def is_ready(self) -> bool:
        """Whether the flows run."""
        return self._run is not None and self._run.is_running

    def text(self) -> bytes:
        """The page that Prometheus reads."""
        page = MetricsText()
        page.gauge("ottla_pipeline_info", "1, with the pipeline's name.", 1, [("pipeline", self._pipeline)])
        page.gauge("ottla_pipeline_ready", "1 while the flows run.", int(self.is_ready))
        page.gauge("ottla_pipeline_start_time_seconds", "When the command began, as a Unix time.", self._begin_s)
        page.counter(
            "ottla_pipeline_restarts_total", "How often flows were started again after an outage.", max(0, self._restarts)
        )
        if self._run is not None:
            self._write_flows(page, self._run)
            self._write_checks(page, self._run)
        return page.encode()

    def flows(self) -> bytes:
        """The flows as JSON."""
        newest, ended_s, errors = self._newest.copy(), self._ended_s.copy(), self._errors.copy()
        totals = None if self._run is None else self._run.totals
        found = []
        for flow in self._flows:
            name, (reads, writes) = flow["flow"], edges(flow)
            each = newest.get(name)
            lags: dict[str, int] = {}
            for (topic, _), lag in {} if each is None else each.lag_by_partition.items():
                lags[topic] = lags.get(topic, 0) + lag
            error_s, error = errors.get(name, (None, None))
            found.append(
                {
                    "flow": name,
                    "kind": flow["kind"],
                    "reads": reads,
                    "writes": writes,
                    "rows": 0 if totals is None else totals.rows.get(name, 0),
                    "batches": 0 if totals is None else totals.batches.get(name, 0),
                    "rowsPerSecond": None if each is None else each.rows_per_s,
                    "batchSeconds": None if each is None else each.batch_ms / 1000,
                    "lastBatchTime": ended_s.get(name),
                    "lag": None if each is None else each.lag,
                    "lagByTopic": lags,
                    "lastError": error,
                    "lastErrorTime": error_s,
                }
            )
        about = {"pipeline": self._pipeline, "isReady": self.is_ready, "startTime": self._begin_s, "flows": found}
        return json.dumps({**about, "restarts": max(0, self._restarts)}).encode()

    def _write_flows(self, page: MetricsText, run: Run) -> None:
        names, newest, ended_s = run.flow_names, self._newest.copy(), self._ended_s.copy()
        for name, words, totals in (
            ("rows", "Rows that a flow has read; of a materialized view, rows that it has written.", run.totals.rows.copy()),
            ("batches", "Batches that have ended.", run.totals.batches.copy()),
        ):
            family = page.family(f"ottla_pipeline_{name}_total", "counter", words)
            for flow in names:
                family.sample(totals.get(flow, 0), [("flow", flow)])
        for name, words, values in (
            ("rows_per_second", "Rows per second of the last batch.", {flow: each.rows_per_s for flow, each in newest.items()}),
            ("batch_seconds", "How long the last batch took.", {flow: each.batch_ms / 1000 for flow, each in newest.items()}),
            ("last_batch_time_seconds", "When the last batch was seen to end, as a Unix time.", ended_s),
        ):
            family = page.family(f"ottla_pipeline_{name}", "gauge", words)
            for flow, value in values.items():
                family.sample(value, [("flow", flow)])
        family = page.family(
            "ottla_pipeline_lag_records", "gauge", "Records that were there after the last batch, and not read."
        )
        for flow, each in newest.items():
            for (topic, partition), lag in each.lag_by_partition.items():
                family.sample(lag, [("flow", flow), ("topic", topic), ("partition", partition)])
        for which, words in BEHIND_WORDS.items():
            family = page.family(f"ottla_pipeline_offsets_behind_latest_{which}", "gauge", words)
            for flow, each in newest.items():
                if (numbers := behind_latest(each.lag_by_partition.values())) is not None:
                    family.sample(getattr(numbers, which), [("flow", flow)])

    def _write_checks(self, page: MetricsText, run: Run) -> None:
        found = [(flow, check) for flow, checks in run.totals.checks.copy().items() for check in checks.copy().values()]
        streams = [(flow, check) for flow, check in found if flow not in run.view_names]
        views = [(flow, check) for flow, check in found if flow in run.view_names]
        _write(page, "ottla_pipeline_checked_rows_total", "counter", "Rows that a check has looked at.", streams, "rows")
        _write(page, "ottla_pipeline_bad_rows_total", "counter", "Rows that a check has found bad.", streams, "bad")
        # A view is computed from all rows each time: its counts do not add up.
        words = "Rows that a check has found bad when the materialized view was computed last."
        _write(page, "ottla_pipeline_view_bad_rows", "gauge", words, views, "bad")
        letters: dict[tuple[str, str], int] = {}
        for flow, check in streams:
            if check.action == DEAD_LETTER:
                key = (flow, check.topic or "")
                letters[key] = letters.get(key, 0) + check.bad
        family = page.family("ottla_pipeline_dead_letters_total", "counter", "Rows that were sent to a dead-letter topic.")
        for (flow, topic), count in letters.items():
            family.sample(count, [("flow", flow), ("topic", topic)])


def _write(page: MetricsText, name: str, kind: str, words: str, found: Iterable[tuple[str, Check]], number: str) -> None:
    family = page.family(name, kind, words)
    for flow, check in found:
        labels = [("flow", flow), ("at", check.at), ("check", check.kind), ("name", check.name), ("action", check.action)]
        family.sample(getattr(check, number), labels)


class _ServerV6(ThreadingHTTPServer):
    address_family = socket.AF_INET6


class MetricsPage:
    """Serves the metrics of a run on `host` and `port` (0: any free one) until it is closed."""

    def __init__(self, metrics: RunMetrics, host: str, port: int) -> None:
        try:
            self._server = (_ServerV6 if ":" in host else ThreadingHTTPServer)((host, port), _handler_of(metrics))
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            at = f"{host}:{port}"
            raise PipelineError(f"the metrics page cannot be served at {at}: {reason}; choose another --metrics-port") from None
        self._server.daemon_threads = True
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="ottla-metrics", daemon=True)
        self._thread.start()

    def __enter__(self) -> MetricsPage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler_of(metrics: RunMetrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer(200, metrics.text(), CONTENT_TYPE)
            elif path == "/flows":
                self._answer(200, metrics.flows(), "application/json")
            elif path == "/health":
                self._answer(200, b"ok\n")
            elif path == "/ready":
                is_ready = metrics.is_ready
                self._answer(200 if is_ready else 503, b"ready\n" if is_ready else b"the flows do not run\n")
            else:
                self._answer(404, b"there are /metrics, /flows, /health and /ready\n")

        def _answer(self, status: int, text: bytes, kind: str = "text/plain; charset=utf-8") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:
            """Requests are not worth a line."""

    return Handler
