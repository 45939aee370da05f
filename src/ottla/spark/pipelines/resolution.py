"""From the files of a pipeline to DataFrames: they define a `Graph`, whose flows are analysed, each after those it reads.

Which flow reads which is not declared: a query that names a table that is not there yet is tried again after the others. So
Python and SQL are treated alike, and only public API is used, which Spark Connect has too.

Modules that lie in the pipeline's folder can be imported by its files. Their functions are pickled by value while the pipeline
runs: they work where nothing is shipped, under Spark Connect.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from ottla.spark.pipelines import connections, sql_files, storage
from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines.connections import loading
from ottla.spark.pipelines.counts import WatchedQuery
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.expectations import checked, expectations_of
from ottla.spark.pipelines.graph import FlowDefinition, Graph, Output
from ottla.spark.pipelines.spec import OTTLA_NAMES, Spec
from ottla.spark.shipping import Wishes, formats_named
from ottla.spark.sql.errors import analysis_sentence, fragment_of
from ottla.spark.sql.syntax import place_of


def wishes_of(spec: Spec) -> Wishes:
    """The packages of the table formats that the pipeline's files name, those that `ottla.yml` lists, and its modules."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in spec.files()]
    texts += [each.format for each in (*spec.sources, *spec.sinks)]
    return Wishes(tuple(formats_named(texts)), spec.packages, spec.folder)


@contextmanager
def own_modules(folder: Path) -> Iterator[None]:
    """While this lasts, modules in the folder can be imported. They are forgotten afterwards: another pipeline has others."""
    from pyspark import cloudpickle

    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for module in modules_from(folder):
            if module.__name__ in cloudpickle.list_registry_pickle_by_value():
                cloudpickle.unregister_pickle_by_value(module)
            del sys.modules[module.__name__]


def pickle_by_value(folder: Path) -> None:
    """Let the functions of the modules that were imported from the folder travel without them, until `own_modules` ends."""
    from pyspark import cloudpickle

    for module in modules_from(folder):
        cloudpickle.register_pickle_by_value(module)


def modules_from(folder: Path) -> list[ModuleType]:
    """The modules that were imported from the folder."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return [sys.modules[name] for name, file in files.items() if file is not None and Path(file).is_relative_to(folder)]


_KINDS = {
    sql_files.STREAMING_TABLE: graphs.TABLE,
    sql_files.MATERIALIZED_VIEW: graphs.VIEW,
    sql_files.TEMPORARY_VIEW: graphs.TEMPORARY,
}


def load_graph(spec: Spec, spark: Any) -> Graph:
    """The graph that the files define, checked. No query runs; Python files are executed."""
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context

    registry = _make_registry(spec, spark)
    with _folder(spec.folder), loading(spec), graph_element_registration_context(registry):
        for path in spec.files():
            if path.suffix == ".py":
                _execute(path, spec, spark)
            else:
                registry.register_sql(path.read_text(encoding="utf-8"), path)
    found: Graph = registry.graph
    found.check()
    return found


def _make_registry(spec: Spec, spark: Any) -> Any:
    """An object of a class that cannot exist before PySpark is imported."""
    from pyspark.pipelines.graph_element_registry import GraphElementRegistry
    from pyspark.pipelines.output import MaterializedView, Sink, TemporaryView

    class Registry(GraphElementRegistry):
        """Collects what the files define."""

        def __init__(self) -> None:
            self.graph = Graph()

        def register_output(self, output: Any) -> None:
            place = _place(output.source_code_location, spec)
            if isinstance(output, Sink):
                made = Output(output.name, graphs.SINK, place, output.format, dict(output.options))
            elif isinstance(output, TemporaryView):
                made = Output(output.name, graphs.TEMPORARY, place)
            else:
                kind = graphs.VIEW if isinstance(output, MaterializedView) else graphs.TABLE
                columns = tuple(output.partition_cols or ())
                made = Output(output.name, kind, place, output.format, {}, output.schema, columns)
            self.graph.add_output(made)

        def register_flow(self, flow: Any) -> None:
            place = _place(flow.source_code_location, spec)
            expectations = expectations_of(flow.func)
            self.graph.add_flow(
                FlowDefinition(
                    flow.name, flow.target, place, self._watched(flow, flow.func), dict(flow.spark_conf), expectations
                )
            )

        def _watched(self, flow: Any, function: Callable[[], Any]) -> WatchedQuery:
            """The query with the expectations of its target, which may be defined after it."""

            def query() -> Any:
                frame, target = function(), self.graph.outputs.get(flow.target)
                return checked(frame, target.expectations, flow.name) if target and target.expectations else frame

            return WatchedQuery(flow.name, query, lambda: loading(spec))

        def register_auto_cdc_flow(self, flow: Any) -> None:
            raise PipelineError(
                f"{_place(flow.source_code_location, spec)}: create_auto_cdc_flow({flow.target!r}) needs a table format with "
                "MERGE; the example examples/latest-state shows how to keep the latest state without one"
            )

        def register_sql(self, sql_text: str, file_path: Path) -> None:
            name = _relative(str(file_path), spec)
            for statement in sql_files.parse_sql(sql_text, name):
                self._add(statement, f"{name} line {statement.line}")

        def _add(self, statement: sql_files.Statement, place: str) -> None:
            target = statement.target or statement.name
            if statement.kind != sql_files.FLOW:
                kind, columns = _KINDS[statement.kind], tuple(statement.partition_columns)
                self.graph.add_output(
                    Output(
                        statement.name,
                        kind,
                        place,
                        statement.format,
                        schema=statement.schema,
                        partition_columns=columns,
                        expectations=tuple(statement.expectations),
                    )
                )
            if statement.query is not None:
                text = statement.query
                made = FlowDefinition(statement.name, target, place, lambda: spark.sql(text), sql=text, begin=statement.begin)
                self.graph.add_flow(replace(made, query=self._watched(made, made.query)))

    return Registry()


def _execute(path: Path, spec: Spec, spark: Any) -> None:
    made = importlib.util.spec_from_file_location(path.stem, path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    module.__dict__["spark"] = spark  # as spark-pipelines does
    try:
        made.loader.exec_module(module)
    except PipelineError:
        raise
    except Exception as error:
        raise PipelineError(f"{_relative(str(path), spec)}{_line_in(error, path)}: {describe(error)}") from error


def describe(error: BaseException) -> str:
    """An exception's type and the first line of its text; Spark's own errors without their codes."""
    first = str(error).strip().partition("\n")[0]
    if condition := re.match(r"\[[A-Z][A-Z0-9_.]+\] ", first):
        return first[condition.end() :].partition(" SQLSTATE:")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _line_in(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError):
        return f" line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" line {lines[-1]}" if lines else ""


def _place(location: Any, spec: Spec) -> str:
    if location.filename == connections.__file__:
        return OTTLA_NAMES[0]
    line = "" if location.line_number is None else f" line {location.line_number}"
    return f"{_relative(location.filename, spec)}{line}"


def _relative(name: str, spec: Spec) -> str:
    path = Path(name)
    return str(path.relative_to(spec.folder)) if path.is_relative_to(spec.folder) else name


@contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Files may open others by relative names, as under spark-pipelines."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


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
