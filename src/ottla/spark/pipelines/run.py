"""Runs the flows of a resolved pipeline: once, at intervals or continuously, until they end, one breaks or `stop()` is called.

`once` runs flows one after the other, each after those it reads, so that a run moves records all the way through. The other
schedules run all streaming flows at the same time, and compute materialized views again when time is up. The calling thread
waits and reports, from the JSON of Spark's progress reports; Spark runs the queries in threads of its own.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.counts import Check, Checks, added, checks_of, results
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.failures import flow_failed
from ottla.spark.pipelines.graph import FlowDefinition, Output
from ottla.spark.pipelines.resolution import Resolved
from ottla.spark.pipelines.spec import CONTINUOUS, ONCE, Schedule
from ottla.spark.progress.measures import Offsets, behind, behind_latest, parse_offsets


@dataclass(frozen=True)
class FlowProgress:
    """What a flow has done up to its last batch."""

    flow: str
    batch: int
    rows: int
    """Rows of the last batch."""
    rows_per_s: float
    batch_ms: int
    lag: int | None
    """Records that the source has and the flow has not read; None if the source does not say."""
    lag_by_partition: Offsets = field(default_factory=dict, compare=False)

    def as_json(self) -> dict[str, Any]:
        """For --json, with the numbers that Spark's Kafka connector reports."""
        found = {key: value for key, value in asdict(self).items() if key != "lag_by_partition"}
        numbers = behind_latest(self.lag_by_partition.values())
        return found if numbers is None else found | {"offsets_behind_latest": asdict(numbers)}


def flow_progress(flow: str, report: Any) -> FlowProgress | None:
    """The numbers of a report of `StreamingQuery.lastProgress`; None before the first batch."""
    if report is None:
        return None
    found: Mapping[str, Any] = json.loads(report.json) if hasattr(report, "json") else report
    sources = found.get("sources") or []
    # The total is not in the reports of Spark Connect.
    rows = int(found.get("numInputRows") or sum(each.get("numInputRows") or 0 for each in sources))
    batch_ms = int(found.get("batchDuration") or 0)
    rate = 1000 * rows / batch_ms if batch_ms else 0.0
    lags = lag_of(sources)
    lag = None if lags is None else sum(lags.values())
    return FlowProgress(flow, int(found["batchId"]), rows, rate, batch_ms, lag, lags or {})


def lag_of(sources: list[Mapping[str, Any]]) -> Offsets | None:
    """The records between `endOffset` and `latestOffset` by partition; None if no source counts offsets by partition.

    Where two sources read the same partition, both lags count.
    """
    found: Offsets = {}
    is_known = False
    for source in sources:
        ends, latest = parse_offsets(source.get("endOffset")), parse_offsets(source.get("latestOffset"))
        if ends and latest:
            is_known = True
            for each, lag in behind(ends, latest).items():
                found[each] = found.get(each, 0) + lag
    return dict(sorted(found.items())) if is_known else None


OUTPUT_MODE = "ottla.outputMode"
"""A key of a flow's `spark_conf`: append (the default), update or complete."""
POLL_S = 0.2
REFRESH_S = 10.0
"""How often materialized views are computed in a continuous run."""
STARTING_MAX = 2
"""How many queries may start at a time: each starts Python processes, and breaks if one does not connect within 10 s."""
STARTING_POLL_S = 0.05
STARTING_WAIT_S = 30.0
"""How long a flow waits for others to have started: one that hangs must not keep it back."""
NOT_CONNECTED = "Python worker failed to connect back"
"""Spark's error where a Python process has not started within 10 s: no setting changes that. Nothing of the batch is done."""
STARTS_AGAIN_MAX = 10
"""How often a flow is started again after that error."""
STOP_TIMEOUT_S = 10.0
"""How long a stop waits for the batches that are under way."""

Report = Callable[[FlowProgress], None]


@dataclass
class Totals:
    """What a run did, by flow."""

    rows: dict[str, int] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)
    lag: dict[str, int | None] = field(default_factory=dict)
    checks: dict[str, Checks] = field(default_factory=dict)
    """What decoding and expectations have found."""
    seconds: float = 0.0

    def add(self, progress: FlowProgress) -> None:
        """Count a batch."""
        self.rows[progress.flow] = self.rows.get(progress.flow, 0) + progress.rows
        self.batches[progress.flow] = self.batches.get(progress.flow, 0) + 1
        self.lag[progress.flow] = progress.lag


class Run:
    """One run of a pipeline. `stop()` may be called from any thread or from a signal handler."""

    def __init__(
        self,
        resolved: Resolved,
        spark: Any,
        schedule: Schedule,
        report: Report = lambda progress: None,
        totals: Totals | None = None,
        notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`notice` is called with a sentence when a check finds bad data for the first time."""
        self._resolved = resolved
        self._spark = spark
        self._schedule = schedule
        self._report = report
        self._notice = notice
        self._stopping = threading.Event()
        self._queries: dict[str, Any] = {}
        self._seen: dict[str, int] = {}
        self._started_again: dict[str, int] = {}
        self._null_fields: dict[str, set[tuple[str, str]]] = {}
        """By flow, the views and fields that are null in this run, and never were before."""
        self.totals = Totals() if totals is None else totals
        """With those of earlier runs, if they are given."""
        self.is_running = False
        """Whether the flows have started and nobody stops them."""
        self.flow_names = [flow.name for flow in self._flows()]
        self.view_names = frozenset(flow.name for flow in self._flows() if self._is_view(flow))

    def stop(self) -> None:
        """Ask the run to end after the batches that are under way."""
        self.is_running = False
        self._stopping.set()

    def run(self) -> Totals:
        """Run until the schedule is done or `stop()` is called; raises `FlowFailed` if a flow breaks."""
        begin_s = time.monotonic()
        with self._shown_in_group():
            try:
                if self._schedule.kind == ONCE:
                    self._run_once()
                else:
                    self._run_on()
            finally:
                self.is_running = False
                self._stop_queries()
                self.totals.seconds += time.monotonic() - begin_s
        return self.totals

    def _shown_in_group(self) -> AbstractContextManager[Any]:
        """While this lasts, what the flows have read is committed to the pipeline's consumer group."""
        spec = self._resolved.spec
        if spec.group is None:
            return nullcontext()
        from ottla.spark.progress.listener import ProgressListener

        return ProgressListener(spec.group, spec.client_options, queries=self.flow_names).attach(self._spark)

    def _run_once(self) -> None:
        self.is_running = not self._stopping.is_set()
        for flow in self._flows():
            if self._stopping.is_set():
                return
            if self._is_view(flow):
                self._compute(flow)
                continue
            self._start(flow)
            while True:
                while self._queries[flow.name].isActive and not self._stopping.is_set():
                    self._stopping.wait(POLL_S)
                    self._look()
                self._look()
                if not self._queries[flow.name].isActive or self._stopping.is_set():
                    break

    def _run_on(self) -> None:
        flows = self._flows()
        views = [flow for flow in flows if self._is_view(flow)]
        for flow in flows:
            if not self._is_view(flow):
                self._await_turn()
                if self._stopping.is_set():
                    return
                self._start(flow)
        self.is_running = not self._stopping.is_set()
        interval_s = REFRESH_S if self._schedule.kind == CONTINUOUS else self._schedule.interval_s
        due_s = time.monotonic()
        while not self._stopping.is_set():
            if views and time.monotonic() >= due_s:
                for flow in views:
                    self._compute(flow)
                due_s = time.monotonic() + interval_s
            self._stopping.wait(POLL_S)
            self._look()

    def _await_turn(self) -> None:
        """Wait while as many queries as may are starting, so that many flows can start on a busy machine."""
        until_s = time.monotonic() + STARTING_WAIT_S
        while self.starting >= STARTING_MAX and time.monotonic() < until_s:
            if self._stopping.wait(STARTING_POLL_S):
                return

    @property
    def starting(self) -> int:
        """How many queries are starting."""
        return sum(each.isActive and each.status["message"].startswith("Initializing") for each in self._queries.values())

    def _flows(self) -> list[FlowDefinition]:
        """The flows that write, each after those it reads."""
        graph = self._resolved.graph
        return [
            graph.flows[name]
            for name in self._resolved.frames
            if graph.outputs[graph.flows[name].target].kind != graphs.TEMPORARY
        ]

    def _is_view(self, flow: FlowDefinition) -> bool:
        return self._resolved.graph.outputs[flow.target].kind == graphs.VIEW

    def _start(self, flow: FlowDefinition) -> None:
        output = self._resolved.graph.outputs[flow.target]
        writer = self._resolved.frames[flow.name].writeStream.queryName(flow.name).trigger(**self._schedule.trigger())
        writer = writer.outputMode(flow.configuration.get(OUTPUT_MODE, "append"))
        writer = writer.option("checkpointLocation", storage.checkpoint(self._resolved.spec, flow.name))
        if output.kind == graphs.SINK and flow.configuration.get(OUTPUT_MODE, "append") != "append":
            # Spark lets Python data sources append only. Each batch of changes is appended by a batch write, at least once.
            writer = writer.foreachBatch(_appender(output))
        elif output.kind == graphs.SINK:
            writer = writer.format(output.format).options(**output.options)
        else:
            kind, frame = output.format or "parquet", self._resolved.frames[flow.name]
            storage.check_batches(self._resolved.spec, flow.name, output.name)
            storage.check_columns(self._resolved.spec, flow.name, output.name, kind, frame, self._spark)
            writer = writer.format(output.format or "parquet").option("path", storage.table(self._resolved.spec, output.name))
            if output.partition_columns:
                writer = writer.partitionBy(*output.partition_columns)
        try:
            with _configured(self._spark, flow):
                self._queries[flow.name] = writer.start()
        except Exception as error:
            raise self._failure(flow.name, error) from error

    def _compute(self, flow: FlowDefinition) -> None:
        """Compute a materialized view: all of it, from what its inputs hold now."""
        output = self._resolved.graph.outputs[flow.target]
        begin_s = time.monotonic()
        try:
            for name in self._resolved.tables:
                self._spark.catalog.refreshTable(name)  # the session remembers which files a table had
            observations = self._renew_views()
            with _configured(self._spark, flow):
                writer = flow.query().write.mode("overwrite").format(output.format or "parquet")
                if output.partition_columns:
                    writer = writer.partitionBy(*output.partition_columns)
                writer.save(storage.table(self._resolved.spec, output.name))
            self._spark.catalog.refreshTable(output.name)
            rows = self._spark.table(output.name).count()
        except Exception as error:
            raise self._failure(flow.name, error) from error
        took_s = max(time.monotonic() - begin_s, 0.001)
        progress = FlowProgress(flow.name, self._seen.get(flow.name, -1) + 1, rows, rows / took_s, round(took_s * 1000), None)
        self._seen[flow.name] = progress.batch
        self.totals.add(progress)
        counted = results([*observations, *flow.watch.observations])
        # A view is computed from all rows each time: the newest counts are those of the view.
        self.totals.checks[flow.name] = {}
        self._count_checks(flow.name, f"view {id(self)} {progress.batch}", progress.batch, checks_of(counted))
        self._report(progress)

    def _renew_views(self) -> list[Any]:
        """Make temporary views with checks again: Spark reports the counts of an object in a batch query only once."""
        observations = []
        for name in self._resolved.views:
            for view in self._resolved.graph.flows_into(name):
                if view.watch.observations:
                    view.query().createOrReplaceTempView(name)
                    observations += view.watch.observations
        return observations

    def _look(self) -> None:
        """Report new batches; raise if a query has ended with an error."""
        for name, query in list(self._queries.items()):
            is_active, error = query.isActive, query.exception()
            self._count(name, query)
            if error is not None:
                if NOT_CONNECTED in str(error) and not self._stopping.is_set() and self._start_again(name):
                    continue
                raise self._failure(name, error)
            if not is_active and self._schedule.kind != ONCE and not self._stopping.is_set():
                raise PipelineError(f"the flow {name} has stopped by itself: run the pipeline again")

    def _start_again(self, name: str) -> bool:
        """Start a flow again from its checkpoint, because Spark could not start a Python process for it; not for ever."""
        count = self._started_again[name] = self._started_again.get(name, 0) + 1
        if count > STARTS_AGAIN_MAX:
            return False
        self._notice(f"the flow {name} starts again: this machine is too busy to start Spark's Python processes within 10 s")
        self._start(self._resolved.graph.flows[name])
        return True

    def _count(self, name: str, query: Any) -> None:
        last = query.lastProgress
        for report in [] if last is None or last.batchId <= self._seen.get(name, -1) else query.recentProgress:
            progress = flow_progress(name, report)
            # A trigger without new records has the number of the next batch, but no batch.
            if progress is not None and progress.batch > self._seen.get(name, -1) and "addBatch" in report.durationMs:
                self._seen[name] = progress.batch
                self.totals.add(progress)
                self._count_checks(name, str(report.id), progress.batch, checks_of(report.observedMetrics))
                self._report(progress)

    def _count_checks(self, flow: str, query: str, batch: int, found: list[Check]) -> None:
        if not found:
            return
        spec = self._resolved.spec
        began = self._null_fields.setdefault(flow, set())
        found = storage.add_counts(spec, flow, query, batch, [each.masked(spec.masked) for each in found], began)
        totals = self.totals.checks.setdefault(flow, {})
        known = {key for key, each in totals.items() if each.bad}
        added(totals, found)
        for each in found:
            if each.bad and each.key not in known:
                self._notice(f"the flow {flow}: {each.text()}")

    def _stop_queries(self) -> None:
        deadline_s = time.monotonic() + STOP_TIMEOUT_S
        for name, query in self._queries.items():
            # Between two batches: a batch that is cut off is written again by the next run.
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline_s:
                time.sleep(0.01)
            self._count(name, query)
            if query.isActive:
                query.stop()

    def _failure(self, flow: str, error: Exception) -> PipelineError:
        return error if isinstance(error, PipelineError) else flow_failed(flow, error, str(self._resolved.spec.folder))


def _appender(output: Output) -> Callable[[Any, int], None]:
    kind, options = output.format, dict(output.options)

    def append(frame: Any, batch: int) -> None:
        frame.write.format(kind).options(**options).mode("append").save()

    return append


class _configured:
    """A flow's own settings, while its query starts."""

    def __init__(self, spark: Any, flow: FlowDefinition) -> None:
        self._conf = spark.conf
        self._wanted = {key: value for key, value in flow.configuration.items() if key != OUTPUT_MODE}
        self._before: dict[str, str | None] = {}

    def __enter__(self) -> None:
        for key, value in self._wanted.items():
            self._before[key] = self._conf.get(key, None)
            self._conf.set(key, value)

    def __exit__(self, *_: object) -> None:
        for key, value in self._before.items():
            if value is None:
                self._conf.unset(key)
            else:
                self._conf.set(key, value)
