"""Turns the flows of a graph into DataFrames, each after those it reads, and makes tables and views known to the session.

Which flow reads which is not declared: a query that names a table that is not there yet is tried again after the others. So
Python and SQL are treated alike, and only public API is used, which Spark Connect has too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.definitions import describe, load_graph
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.graph import FlowDefinition, Graph, Output
from ottla.spark.pipelines.shipped import own_modules, pickle_by_value
from ottla.spark.pipelines.spec import Spec
from ottla.spark.sql.errors import analysis_sentence, fragment_of
from ottla.spark.sql.syntax import place_of

NOT_FOUND = "TABLE_OR_VIEW_NOT_FOUND"


@dataclass
class Resolved:
    """A graph whose queries Spark has analysed."""

    spec: Spec
    graph: Graph
    frames: dict[str, Any] = field(default_factory=dict)
    """DataFrames by flow, each after those it depends on."""
    tables: list[str] = field(default_factory=list)
    views: list[str] = field(default_factory=list)

    def forget(self, spark: Any) -> None:
        """Take the tables and views out of the session again. Files stay."""
        for name in self.views:
            spark.catalog.dropTempView(name)
        for name in self.tables:
            spark.sql(f"DROP TABLE IF EXISTS {quoted(name)}")


@contextmanager
def prepared(spec: Spec, spark: Any) -> Iterator[Resolved]:
    """The pipeline, loaded and resolved on a session, which is left as it was."""
    before = _configure(spec, spark)
    resolved = None
    try:
        with own_modules(spec.folder):
            graph = load_graph(spec, spark)
            pickle_by_value(spec.folder)
            resolved = resolve(spec, graph, spark)
            yield resolved
    finally:
        if resolved is not None:
            resolved.forget(spark)
        for key, value in before.items():
            spark.conf.set(key, value) if value is not None else spark.conf.unset(key)


def _configure(spec: Spec, spark: Any) -> dict[str, str | None]:
    """Set the pipeline's configuration on a session that was there before; returns what was set."""
    before: dict[str, str | None] = {}
    for key, value in spec.configuration.items():
        current = spark.conf.get(key, None)
        if current != value and (not key.startswith("spark.") or spark.conf.isModifiable(key)):
            before[key] = current
            spark.conf.set(key, value)
    return before


def quoted(name: str) -> str:
    """A name of one or more parts, for SQL."""
    return ".".join(f"`{part}`" for part in name.split("."))


def resolve(spec: Spec, graph: Graph, spark: Any) -> Resolved:
    """Analyse every query. A `PipelineError` names the flow that reads what is not there, or the flows in a cycle."""
    resolved = Resolved(spec, graph)
    try:
        _resolve_all(resolved, spark)
    except BaseException:
        resolved.forget(spark)
        raise
    return resolved


def _resolve_all(resolved: Resolved, spark: Any) -> None:
    waiting = list(resolved.graph.flows.values())
    while waiting:
        blocked: dict[str, str] = {}
        rest = []
        for flow in waiting:
            missing = _try(flow, resolved, spark)
            if missing is not None:
                rest.append(flow)
                blocked[flow.name] = missing
        if len(rest) == len(waiting):
            raise PipelineError(_explain_cycle(rest, blocked))
        waiting = rest


def _try(flow: FlowDefinition, resolved: Resolved, spark: Any) -> str | None:
    """Analyse a flow's query; returns the output it needs that is not there yet."""
    try:
        frame = flow.query()
        check_result(flow, frame)
        _ = frame.schema  # Spark Connect analyses only when it is asked
    except PipelineError:
        raise
    except Exception as error:
        missing = _missing_table(error)
        if missing is None:
            raise PipelineError(_refused(flow, error)) from error
        if missing not in resolved.graph.outputs or resolved.graph.outputs[missing].kind == graphs.SINK:
            there = [name for name, each in resolved.graph.outputs.items() if each.kind != graphs.SINK]
            raise PipelineError(
                f"{flow.place}: the flow {flow.name} reads {missing}, which is no table or view of the pipeline; "
                f"there are {', '.join(sorted(there))}"
            ) from None
        return missing
    _check_streaming(flow, resolved.graph.outputs[flow.target], frame)
    resolved.frames[flow.name] = frame
    _make_known(resolved, resolved.graph.outputs[flow.target], frame, spark)
    return None


def _refused(flow: FlowDefinition, error: Exception) -> str:
    """The sentence for a query that Spark's analysis refuses. In SQL it names the place."""
    found = fragment_of(error) if flow.sql is not None else None
    if flow.sql is None or found is None:
        return f"{flow.place}: the flow {flow.name} cannot be analysed: {describe(error)}"
    file = flow.place.rpartition(" line ")[0]
    place = place_of(flow.sql, found[1], flow.begin)
    return f"{file} {place}: the flow {flow.name} cannot be analysed: {analysis_sentence(error)}"


def check_result(flow: FlowDefinition, frame: Any) -> None:
    """A flow's function must return a DataFrame."""
    if not hasattr(frame, "isStreaming"):
        raise PipelineError(f"{flow.place}: the flow {flow.name} returns {type(frame).__name__}: it must return a DataFrame")


def _check_streaming(flow: FlowDefinition, output: Output, frame: Any) -> None:
    if output.kind in (graphs.TABLE, graphs.SINK) and not frame.isStreaming:
        raise PipelineError(
            f"{flow.place}: the flow {flow.name} writes to the {output.kind} {output.name} but reads no stream: "
            "read with spark.readStream (in SQL: STREAM name), or make it a materialized view"
        )
    if output.kind == graphs.VIEW and frame.isStreaming:
        raise PipelineError(
            f"{flow.place}: the materialized view {output.name} reads a stream: read with spark.read (in SQL: the name "
            "without STREAM), or make it a streaming table"
        )


def _make_known(resolved: Resolved, output: Output, frame: Any, spark: Any) -> None:
    if output.kind == graphs.TEMPORARY:
        frame.createOrReplaceTempView(output.name)
        resolved.views.append(output.name)
    elif output.kind in (graphs.TABLE, graphs.VIEW) and output.name not in resolved.tables:
        path = storage.table(resolved.spec, output.name)
        storage.make_folder(path)
        for end in range(1, output.name.count(".") + 1):
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted('.'.join(output.name.split('.')[:end]))}")
        if spark.catalog.tableExists(output.name):
            raise PipelineError(f"{output.place}: the session has another table {output.name}: choose another name")
        # With a location the table is external: its files outlive the session, whose catalog is in memory.
        spark.catalog.createTable(output.name, path=path, source=output.format or "parquet", schema=_schema(output, frame))
        resolved.tables.append(output.name)


def _schema(output: Output, frame: Any) -> Any:
    if not isinstance(output.schema, str):
        return output.schema or frame.schema
    from pyspark.sql.types import StructType

    return StructType.fromDDL(output.schema)


def _missing_table(error: Exception) -> str | None:
    condition = getattr(error, "getCondition", lambda: None)()
    if condition != NOT_FOUND:
        return None
    name = (error.getMessageParameters() or {}).get("relationName", "")  # type: ignore[attr-defined]
    return ".".join(part.strip("`") for part in str(name).split("."))


def _explain_cycle(rest: list[FlowDefinition], blocked: dict[str, str]) -> str:
    """The sentence for flows of which each needs another's output first."""
    by_target = {flow.target: flow.name for flow in rest}
    name, path = rest[0].name, []
    while name not in path:
        path.append(name)
        name = by_target.get(blocked[name], name)
    cycle = path[path.index(name) :]
    if len(cycle) == 1:
        return f"the flow {cycle[0]} reads {blocked[cycle[0]]}, which only it writes: a flow cannot read its own output"
    return f"the flows {', '.join(cycle)} read each other in a circle: one of them must not read {blocked[cycle[-1]]}"
