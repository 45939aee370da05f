"""Loads the Python and SQL files of a pipeline into a `Graph`: our implementation of PySpark's `GraphElementRegistry`."""

from __future__ import annotations

import importlib.util
import os
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ottla.spark.pipelines import connections, sql_files
from ottla.spark.pipelines import graph as graphs
from ottla.spark.pipelines.connections import loading
from ottla.spark.pipelines.counts import WatchedQuery
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.expectations import checked, expectations_of
from ottla.spark.pipelines.graph import FlowDefinition, Graph, Output
from ottla.spark.pipelines.spec import OTTLA_NAMES, Spec

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
